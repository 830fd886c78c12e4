#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <span>

#include "harness/process.hpp"
#include "tool/fd.hpp"
#include "tool/fixture.hpp"

namespace tool_test {

words role(const std::string& name, words arguments) {
  words all{std::filesystem::read_symlink("/proc/self/exe").string(), "--play-role", name};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

namespace {

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int s : signals) ::sigaddset(&set, s);
  return set;
}

/// Prints the name of every signal that arrives, and ends at USR2.
int tell_signals(const std::vector<std::string>&) {
  const sigset_t all =
      set_of({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT});
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  harness::say("ready");
  for (int signal = 0; signal != SIGUSR2;) {
    ::sigwait(&all, &signal);
    harness::say(::sigabbrev_np(signal));
  }
  return 0;
}

/// Ignores TERM and ends only when its stdin ends; prints that then.
int ignore_term(const std::vector<std::string>&) {
  ::signal(SIGTERM, SIG_IGN);
  harness::say("ready");
  while (!harness::hear().empty()) {
  }
  harness::say("went by itself");
  return 0;
}

/// Opens a FIFO, reports there that it is up, and keeps the FIFO open until it is killed.
int keep_open(const std::vector<std::string>& arguments) {
  ::signal(SIGTERM, SIG_IGN);
  const int fifo = ::open(arguments.at(0).c_str(), O_WRONLY);
  if (::write(fifo, "up\n", 3) != 3) return 1;
  for (;;) ::pause();
}

/// Opens one file before the note and one after it, and lists the open files of its child on
/// stdout.
int open_two(const std::vector<std::string>&) {
  constexpr int before = 40, after = 50;
  ::dup2(STDERR_FILENO, before);
  holdfast::tool::note_inherited_files();
  ::dup2(STDERR_FILENO, after);
  holdfast::tool::close_others_on_exec();
  ::execl("/bin/sh", "sh", "-c", "cd /proc/self/fd && ls -d 1 2 40 50 2>/dev/null", nullptr);
  return 1;
}

void fill(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  const std::string page(4096, '.');
  for (std::size_t size = page.size(); size > 0;)
    if (::write(fd, page.data(), size) < 0) size /= 2;
  ::fcntl(fd, F_SETFL, flags);
}

/// A descriptor that takes no more bytes, though somebody may read from it at any time.
int full(const std::string& kind) {
  std::array<int, 2> ends{-1, -1};
  if (kind == "pipe" && ::pipe(ends.data()) == 0) fill(ends[1]);
  if (kind == "socket" && ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0) fill(ends[1]);
  if (kind == "device") ends[1] = ::eventfd(0, 0);
  constexpr std::uint64_t most = ~std::uint64_t{0} - 1;
  if (kind == "device" && ::write(ends[1], &most, sizeof most) < 0) return -1;
  return ends[1];
}

/// Becomes the given command, with a full stderr of that kind.
int with_full_stderr(const std::vector<std::string>& arguments) {
  if (::dup2(full(arguments.at(0)), STDERR_FILENO) < 0) return 1;
  std::vector<char*> argv;
  for (const auto& word : std::span(arguments).subspan(1))
    argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execv(argv.front(), argv.data());
  return 1;
}

const harness::role roles[]{{"tell_signals", tell_signals},
                            {"ignore_term", ignore_term},
                            {"keep_open", keep_open},
                            {"with_full_stderr", with_full_stderr},
                            {"open_two", open_two}};

}  // namespace

}  // namespace tool_test

int main(int argc, char** argv) { return harness::run(argc, argv); }
