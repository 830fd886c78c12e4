#include "tool/screen.hpp"

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

namespace holdfast::tool {

namespace {

/// Alternate screen, no cursor, no automatic line breaks; and back.
constexpr std::string_view take_over = "\x1b[?1049h\x1b[?25l\x1b[?7l";
constexpr std::string_view give_back = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

// The state for the handler of a deadly signal, which has no object.
termios modes_before{};
std::atomic<bool> taken{false};

/// System calls only. If the restore fails, the terminal is gone.
void restore_modes() noexcept {
  if (!taken.exchange(false)) return;
  (void)!::write(STDOUT_FILENO, give_back.data(), give_back.size());
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &modes_before);
}

/// The disposition is the default again (SA_RESETHAND): the signal kills us.
void on_deadly_signal(int signal) {
  restore_modes();
  ::raise(signal);
}

void restore_at_death() {
  struct sigaction action{};
  action.sa_handler = on_deadly_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_NODEFER;
  for (const int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP, SIGXCPU, SIGXFSZ,
                      SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGSTKFLT, SIGPWR})
    ::sigaction(s, &action, nullptr);
  for (int s = SIGRTMIN; s <= SIGRTMAX; ++s) ::sigaction(s, &action, nullptr);
}

struct named_sequence {
  std::string_view bytes;
  key::code what;
};
constexpr std::array<named_sequence, 16> sequences{{{"\x1b[A", key::code::up},
                                                    {"\x1bOA", key::code::up},
                                                    {"\x1b[B", key::code::down},
                                                    {"\x1bOB", key::code::down},
                                                    {"\x1b[5~", key::code::page_up},
                                                    {"\x1b[6~", key::code::page_down},
                                                    {"\x1b[H", key::code::home},
                                                    {"\x1bOH", key::code::home},
                                                    {"\x1b[1~", key::code::home},
                                                    {"\x1b[F", key::code::end},
                                                    {"\x1bOF", key::code::end},
                                                    {"\x1b[4~", key::code::end},
                                                    {"\r", key::code::enter},
                                                    {"\n", key::code::enter},
                                                    {"\x7f", key::code::backspace},
                                                    {"\b", key::code::backspace}}};

/// The length of the sequence that begins with ESC: `ESC [ … letter`, `ESC O letter`, or ESC alone.
std::size_t sequence_length(std::string_view bytes) {
  if (bytes.size() < 2) return 1;
  if (bytes[1] == 'O') return std::min<std::size_t>(3, bytes.size());
  if (bytes[1] != '[') return 1;
  std::size_t end = 2;
  while (end < bytes.size() && (bytes[end] < 0x40 || bytes[end] > 0x7e)) ++end;
  return std::min(end + 1, bytes.size());
}

std::size_t letter_length(std::string_view bytes) {
  std::size_t n = 1;
  while (n < bytes.size() && (static_cast<unsigned char>(bytes[n]) & 0xC0U) == 0x80U) ++n;
  return n;
}

/// Takes one key off the front.
key take_key(std::string_view& bytes) {
  for (const named_sequence& s : sequences) {
    if (!bytes.starts_with(s.bytes)) continue;
    bytes.remove_prefix(s.bytes.size());
    return {s.what};
  }
  const bool escape = bytes.front() == '\x1b';
  const std::size_t n = escape ? sequence_length(bytes) : letter_length(bytes);
  const std::string text(bytes.substr(0, n));
  bytes.remove_prefix(n);
  if (!escape) return {key::code::text, text};
  return {n == 1 ? key::code::escape : key::code::other};
}

}  // namespace

screen::screen() {
  if (::tcgetattr(STDIN_FILENO, &modes_before) != 0 || ::isatty(STDOUT_FILENO) != 1)
    throw std::system_error(errno, std::generic_category(), "terminal");
  restore_at_death();
  take();
}

void screen::take() const {
  termios raw = modes_before;
  raw.c_iflag &= ~static_cast<tcflag_t>(ICRNL | IXON | INLCR | ISTRIP);
  raw.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON | IEXTEN | ISIG);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  taken = true;
  if (::tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw) != 0)
    throw std::system_error(errno, std::generic_category(), "terminal");
  (void)write_all(STDOUT_FILENO, take_over);
}

void screen::restore() noexcept { restore_modes(); }

void screen::suspend() {
  restore();
  sigset_t stop;
  ::sigemptyset(&stop);
  ::sigaddset(&stop, SIGTSTP);
  sigset_t before;
  ::pthread_sigmask(SIG_UNBLOCK, &stop, &before);
  ::raise(SIGTSTP);  // returns when a shell continues us
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  take();
}

screen_size screen::size() noexcept {
  winsize s{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &s) != 0 || s.ws_col == 0 || s.ws_row == 0) return {};
  return {s.ws_col, s.ws_row};
}

bool screen::draw(std::span<const std::string> lines) const {
  std::string all = "\x1b[H";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i != 0) all += "\r\n";
    all += lines[i] + "\x1b[0m\x1b[K";
  }
  return write_all(STDOUT_FILENO, all + "\x1b[J");
}

std::vector<key> keys_of(std::string_view bytes) {
  std::vector<key> keys;
  while (!bytes.empty()) keys.push_back(take_key(bytes));
  return keys;
}

}  // namespace holdfast::tool
