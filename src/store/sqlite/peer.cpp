#include "store/sqlite/peer.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "base/words.hpp"

namespace holdfast::store::sqlite {
namespace {

using small_text = std::array<char, 1024>;

// Reads the beginning of a file of /proc; empty if it cannot be read. Allocates nothing: it is used
// during waits.
std::string_view read_small(const char* path, small_text& into) noexcept {
  const file_descriptor file{::open(path, O_RDONLY | O_CLOEXEC)};
  if (!file) return {};
  const ssize_t n = ::read(file.get(), into.data(), into.size());
  return n > 0 ? std::string_view{into.data(), static_cast<std::size_t>(n)} : std::string_view{};
}

struct process_status {
  bool known = false;
  char state = '?';
  std::uint64_t threads = 0;
  std::uint64_t started = 0;
};

// Returns the n-th of the words separated by single spaces, counted from 0.
std::string_view word(std::string_view text, int n) noexcept {
  for (; n > 0; --n) {
    const auto space = text.find(' ');
    if (space == std::string_view::npos) return {};
    text.remove_prefix(space + 1);
  }
  return text.substr(0, text.find_first_of(" \n"));
}

// proc(5): the fields behind the program's name, which may contain spaces and parentheses itself.
process_status parse_status(std::string_view text) noexcept {
  const auto name_end = text.rfind(") ");
  if (name_end == std::string_view::npos) return {};
  text.remove_prefix(name_end + 2);
  process_status found;
  const std::string_view state = word(text, 0);
  found.known = state.size() == 1 && base::parse_number(word(text, 17), found.threads) &&
                base::parse_number(word(text, 19), found.started);
  if (found.known) found.state = state.front();
  return found;
}

process_status status_of(std::int32_t pid) noexcept {
  std::array<char, 32> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", pid);
  small_text buffer;
  return parse_status(read_small(path.data(), buffer));
}

// A process whose first thread has ended is a zombie, too, while other threads of it still run.
bool is_gone(const process_status& s) noexcept {
  return (s.state == 'Z' || s.state == 'X') && s.threads <= 1;
}

// /proc may belong to another pid namespace (unshare --pid without a new mount): then its pids are
// not ours.
bool proc_is_ours() noexcept {
  std::array<char, 32> target{};
  const ssize_t n = ::readlink("/proc/self", target.data(), target.size());
  std::int32_t pid = 0;
  return n > 0 && base::parse_number({target.data(), static_cast<std::size_t>(n)}, pid) &&
         pid == ::getpid();
}

std::uint64_t pid_space() noexcept {
  struct stat found{};
  if (!proc_is_ours() || ::stat("/proc/self/ns/pid", &found) != 0) return 0;
  return found.st_ino;
}

// Lines such as "boottime            0         0": the offset from the machine's clock in seconds
// and nanoseconds.
bool clock_is_shifted() noexcept {
  small_text buffer;
  std::string_view text = read_small("/proc/self/timens_offsets", buffer);
  const auto at = text.find("boottime");
  if (at == std::string_view::npos) return false;
  text.remove_prefix(at + std::string_view{"boottime"}.size());
  return text.substr(0, text.find('\n')).find_first_not_of(" 0\t") != std::string_view::npos;
}

failure no_proc(const char* what) {
  return {errc::unsupported, std::string{"reading "} + what +
                                 " failed; the SQLite store needs /proc to see which process is "
                                 "alive: mount it in this container or chroot"};
}

bool pids_comparable(const peer& who, const peer& self) noexcept {
  return who.boot == self.boot && who.pid_space == self.pid_space && self.pid_space != 0;
}

// kill() asks the kernel itself; /proc may hide the processes of other users.
bool no_such_process(std::int32_t pid) noexcept { return ::kill(pid, 0) != 0 && errno == ESRCH; }

}  // namespace

bool peer::same_process(const peer& other) const noexcept {
  return boot == other.boot && pid_space == other.pid_space && pid == other.pid &&
         started == other.started;
}

std::string to_string(const peer& p) {
  std::array<char, 80> text{};
  const int n = std::snprintf(text.data(), text.size(), "%08x-%llx-%d-%llx-%08x", p.boot,
                              static_cast<unsigned long long>(p.pid_space), p.pid,
                              static_cast<unsigned long long>(p.started), p.session);
  return {text.data(), static_cast<std::size_t>(n)};
}

std::optional<peer> parse_peer(std::string_view text) noexcept {
  std::array<std::string_view, 5> parts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto dash = text.find('-');
    if ((dash == std::string_view::npos) != (i == 4)) return std::nullopt;
    parts[i] = text.substr(0, dash);
    text.remove_prefix(i == 4 ? text.size() : dash + 1);
  }
  peer p;
  const bool whole =
      parts[0].size() == 8 && parts[4].size() == 8 && base::parse_number(parts[0], p.boot, 16) &&
      base::parse_number(parts[1], p.pid_space, 16) && base::parse_number(parts[2], p.pid) &&
      base::parse_number(parts[3], p.started, 16) && base::parse_number(parts[4], p.session, 16);
  return whole && p.pid > 0 ? std::optional{p} : std::nullopt;
}

result<std::string> boot_id() {
  small_text buffer;
  const std::string_view text = read_small("/proc/sys/kernel/random/boot_id", buffer);
  if (text.size() < 36) return no_proc("/proc/sys/kernel/random/boot_id");
  return std::string{text.substr(0, 36)};
}

result<peer> this_session() {
  const auto boot = boot_id();
  if (!boot) return boot.error();
  if (clock_is_shifted()) {
    return failure{errc::unsupported,
                   "this process runs in a time namespace whose boot clock differs from the "
                   "machine's, so leases could not be compared; run it without --boottime"};
  }
  peer self;
  self.pid = ::getpid();
  self.pid_space = pid_space();
  if (self.pid_space != 0) {
    const auto mine = status_of(self.pid);
    if (!mine.known) return no_proc("/proc/PID/stat of this process");
    self.started = mine.started;
  }
  const bool boot_ok = base::parse_number(std::string_view{*boot}.substr(0, 8), self.boot, 16);
  if (!boot_ok || ::getrandom(&self.session, sizeof self.session, 0) != sizeof self.session) {
    return no_proc("the boot id and random bytes");
  }
  return self;
}

bool departed(const peer& who, const peer& self) noexcept {
  if (who.boot != self.boot) return true;
  if (!pids_comparable(who, self) || who.same_process(self)) return false;
  if (no_such_process(who.pid)) return true;
  const process_status found = status_of(who.pid);
  // A peer without a start time gives nothing to compare with.
  return found.known && who.started != 0 && (found.started != who.started || is_gone(found));
}

file_descriptor watch_process(const peer& who, const peer& self) noexcept {
  if (!pids_comparable(who, self)) return {};
  file_descriptor process{static_cast<int>(::syscall(SYS_pidfd_open, who.pid, 0))};
  // Only after the descriptor is open does the check show which process of that pid it refers to.
  if (process && departed(who, self)) process.reset();
  return process;
}

}  // namespace holdfast::store::sqlite
