#include "harness/program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "harness/concurrently.hpp"

namespace harness {

namespace {

constexpr int silence_ms = 60'000;

int checked(int value, const char* what) {
  if (value < 0) throw std::system_error(errno, std::generic_category(), what);
  return value;
}

void close_if_open(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

struct channel {
  int ours = -1;
  int theirs = -1;
};

channel pipe_from_them() {
  std::array<int, 2> ends{};
  checked(::pipe2(ends.data(), O_CLOEXEC), "pipe");
  return {ends[0], ends[1]};
}

channel pipe_to_them() {
  const channel c = pipe_from_them();
  return {c.theirs, c.ours};
}

std::vector<std::string> environment_for(const surroundings& around) {
  std::vector<std::string> all;
  const auto name_of = [](const std::string& v) { return v.substr(0, v.find('=')); };
  for (char** at = environ; *at != nullptr; ++at) {
    bool replaced = false;
    for (const auto& v : around.environment) replaced |= name_of(v) == name_of(*at);
    if (!replaced) all.emplace_back(*at);
  }
  for (const auto& v : around.environment)
    if (v.find('=') != std::string::npos) all.push_back(v);
  return all;
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> all;
  for (const auto& w : words) all.push_back(const_cast<char*>(w.c_str()));
  all.push_back(nullptr);
  return all;
}

struct ends {
  int in = -1;
  int out = -1;
  int err = -1;
  bool terminal = false;
};

[[noreturn]] void become(char* const* argv, char* const* environment, const surroundings& around,
                         const ends& theirs) {
  // A test that is killed takes its programs along.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Also without a terminal of its own: otherwise the terminal that runs the tests would be its
  // /dev/tty.
  ::setsid();
  if (theirs.terminal) ::ioctl(theirs.in, TIOCSCTTY, 0);
  ::dup2(theirs.in, STDIN_FILENO);
  ::dup2(theirs.out, STDOUT_FILENO);
  ::dup2(theirs.err, STDERR_FILENO);
  // A shell that runs the tests in the background, or nohup, has some of these signals ignored.
  for (const int s : {SIGHUP, SIGINT, SIGQUIT, SIGPIPE}) ::signal(s, SIG_DFL);
  for (const int s : around.ignored_signals) ::signal(s, SIG_IGN);
  if (!around.folder.empty() && ::chdir(around.folder.c_str()) != 0) ::_exit(126);
  if (around.unprivileged && ::geteuid() == 0) {
    // Opened before the change of user, because the user nobody may not have access to the file's
    // folder.
    const int file = ::open(argv[0], O_PATH | O_CLOEXEC);
    constexpr unsigned nobody = 65534;
    if (::setgid(nobody) != 0 || ::setuid(nobody) != 0) ::_exit(126);
    ::fexecve(file, argv, environment);
  }
  ::execvpe(argv[0], argv, environment);
  ::_exit(127);
}

}  // namespace

reader::reader(reader&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), heard_(std::move(other.heard_)) {}

reader& reader::operator=(reader&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(heard_, other.heard_);
  return *this;
}

reader::~reader() { close_if_open(fd_); }

bool reader::more() {
  pollfd wait{fd_, POLLIN, 0};
  if (checked(::poll(&wait, 1, silence_ms), "poll") == 0)
    throw std::runtime_error("nothing for a minute; heard so far: " + heard_);
  std::array<char, 65536> buffer{};
  const ssize_t n = ::read(fd_, buffer.data(), buffer.size());
  // A terminal's master returns EIO when the last user has closed the terminal.
  if (n <= 0) return false;
  heard_.append(buffer.data(), static_cast<std::size_t>(n));
  return true;
}

std::string reader::take(std::size_t n) {
  std::string taken = heard_.substr(0, n);
  heard_.erase(0, n);
  return taken;
}

std::string reader::until(std::string_view text) {
  std::size_t at = 0;
  while ((at = heard_.find(text)) == std::string::npos)
    if (!more())
      throw std::runtime_error("it ended without '" + std::string(text) + "': " + heard_);
  return take(at + text.size());
}

std::string reader::line() {
  std::string whole = until("\n");
  whole.pop_back();
  return whole;
}

std::string reader::rest() {
  while (more()) {
  }
  return take(heard_.size());
}

program::program(const std::vector<std::string>& argv, const surroundings& around) {
  channel in;
  channel from;
  channel errors;
  if (around.on_terminal) {
    winsize size{};
    size.ws_row = 24;
    size.ws_col = 200;
    checked(::openpty(&from.ours, &from.theirs, nullptr, nullptr, &size), "openpty");
    ::fcntl(from.ours, F_SETFD, FD_CLOEXEC);
    ::fcntl(from.theirs, F_SETFD, FD_CLOEXEC);
    in = {::fcntl(from.ours, F_DUPFD_CLOEXEC, 0), ::fcntl(from.theirs, F_DUPFD_CLOEXEC, 0)};
    errors = {-1, ::fcntl(from.theirs, F_DUPFD_CLOEXEC, 0)};
  } else {
    in =
        around.null_stdin ? channel{-1, ::open("/dev/null", O_RDONLY | O_CLOEXEC)} : pipe_to_them();
    from = pipe_from_them();
    errors = pipe_from_them();
  }
  const auto words = pointers(argv);
  const auto variables = environment_for(around);
  const auto environment = pointers(variables);
  pid_ = checked(::fork(), "fork");
  if (pid_ == 0)
    become(words.data(), environment.data(), around,
           {in.theirs, from.theirs, errors.theirs, around.on_terminal});
  close_if_open(in.theirs);
  close_if_open(from.theirs);
  close_if_open(errors.theirs);
  in_ = in.ours;
  out = reader(from.ours);
  err = reader(errors.ours);
}

program::~program() {
  if (!ended_) {
    ::kill(pid_, SIGKILL);
    wait();
  }
  close_if_open(in_);
}

void program::tell(std::string_view text) const {
  if (::write(in_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw std::system_error(errno, std::generic_category(), "writing to its stdin");
}

void program::close_stdin() { close_if_open(in_); }

void program::signal(int number) const { checked(::kill(pid_, number), "kill"); }

void program::stop() const {
  signal(SIGSTOP);
  await_stop();
}

void program::await_stop() const {
  siginfo_t info{};
  checked(::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WEXITED | WNOWAIT), "waitid");
}

int program::wait() {
  if (ended_) return code_;
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0)
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waitpid");
  ended_ = true;
  code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return code_;
}

outcome run_to_end(const std::vector<std::string>& argv, const surroundings& around,
                   std::string_view input) {
  program p(argv, around);
  if (!input.empty()) p.tell(input);
  p.close_stdin();
  outcome o;
  // Reads both at once, so that neither pipe fills up.
  auto errors = harness::concurrently([&] { return p.err.rest(); });
  o.out = p.out.rest();
  o.err = errors.get();
  o.code = p.wait();
  return o;
}

}  // namespace harness
