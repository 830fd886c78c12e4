#include "harness/process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "harness/caller.hpp"
#include "harness/each_test.hpp"

namespace harness {

namespace {

constexpr const char* hidden_argument = "--play-role";
constexpr int line_timeout_ms = 60'000;

std::map<std::string, role::body>& roles() {
  static std::map<std::string, role::body> all;
  return all;
}

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

int play(const std::string& name, const std::vector<std::string>& args) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto found = roles().find(name);
  if (found == roles().end()) throw std::invalid_argument("no role called " + name);
  return found->second(args);
}

struct pipe_ends {
  int read_end;
  int write_end;
};

pipe_ends make_pipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) fail("pipe");
  return {fds[0], fds[1]};
}

// Between fork and exec only async-signal-safe calls: other threads may hold any lock.
[[noreturn]] void become(char* const* argv, int in, int out) {
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::execv("/proc/self/exe", argv);
  ::_exit(127);
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (auto& w : words) all.push_back(w.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace

role::role(std::string name, body run) { roles().emplace(std::move(name), std::move(run)); }

int run(int argc, char** argv, void (*before_tests)()) {
  ::signal(SIGPIPE, SIG_IGN);
  forget_the_callers_settings();
  if (argc >= 3 && std::string(argv[1]) == hidden_argument) {
    try {
      return play(argv[2], {argv + 3, argv + argc});
    } catch (const std::exception& e) {
      std::cerr << "role " << argv[2] << ": " << e.what() << std::endl;
      return 1;
    }
  }
  testing::InitGoogleTest(&argc, argv);
  watch_each_test();
  if (before_tests) before_tests();
  return RUN_ALL_TESTS();
}

std::vector<pid_t> children_of(pid_t parent) {
  const std::string id = std::to_string(parent);
  std::ifstream file("/proc/" + id + "/task/" + id + "/children");
  std::vector<pid_t> found;
  for (pid_t child = 0; file >> child;) found.push_back(child);
  return found;
}

void say(const std::string& line) { std::cout << line << std::endl; }

std::string hear() {
  std::string line;
  std::getline(std::cin, line);
  return line;
}

child::child(const std::string& role, std::vector<std::string> args) {
  const pipe_ends in = make_pipe();
  const pipe_ends out = make_pipe();
  std::vector<std::string> words{"holdfast-test-child", hidden_argument, role};
  words.insert(words.end(), args.begin(), args.end());
  const auto argv = pointers(words);
  pid_ = ::fork();
  if (pid_ < 0) fail("fork");
  if (pid_ == 0) become(argv.data(), in.read_end, out.write_end);
  ::close(in.read_end);
  ::close(out.write_end);
  to_ = in.write_end;
  from_ = out.read_end;
}

child::~child() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    wait();
  }
  close_pipes();
}

child::child(child&& other) noexcept { *this = std::move(other); }

child& child::operator=(child&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(to_, other.to_);
  std::swap(from_, other.from_);
  std::swap(status_, other.status_);
  std::swap(heard_, other.heard_);
  return *this;
}

void child::close_pipes() noexcept {
  if (to_ >= 0) ::close(to_);
  if (from_ >= 0) ::close(from_);
  to_ = from_ = -1;
}

void child::tell(const std::string& line) {
  const std::string text = line + "\n";
  if (::write(to_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) fail("tell");
}

std::string child::expect_line() {
  for (;;) {
    if (const auto end = heard_.find('\n'); end != std::string::npos) {
      std::string line = heard_.substr(0, end);
      heard_.erase(0, end + 1);
      return line;
    }
    pollfd ready{from_, POLLIN, 0};
    if (::poll(&ready, 1, line_timeout_ms) == 0) throw std::runtime_error("the child says nothing");
    char buffer[512];
    const ssize_t size = ::read(from_, buffer, sizeof buffer);
    if (size <= 0) throw std::runtime_error("the child ended; it said: " + heard_);
    heard_.append(buffer, static_cast<std::size_t>(size));
  }
}

void child::send(int signal) const {
  if (::kill(pid_, signal) != 0) fail("kill " + std::to_string(pid_));
}

void child::wait_for_state(int options) {
  while (::waitpid(pid_, &status_, options) < 0) {
    if (errno != EINTR) fail("waitpid " + std::to_string(pid_));
  }
  if (WIFEXITED(status_) || WIFSIGNALED(status_)) pid_ = -1;
}

void child::kill() {
  if (pid_ < 0) return;
  send(SIGKILL);
  wait();
}

void child::stop() {
  send(SIGSTOP);
  wait_for_state(WUNTRACED);
  if (!WIFSTOPPED(status_)) throw std::runtime_error("the child ended instead of stopping");
}

void child::resume() {
  send(SIGCONT);
  wait_for_state(WCONTINUED);  // or it continued so fast that it has ended: wait() returns how
}

int child::wait() {
  if (pid_ > 0) wait_for_state(0);
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
}

bool child::ended() {
  if (pid_ < 0) return true;
  if (::waitpid(pid_, &status_, WNOHANG) != pid_) return false;
  pid_ = -1;
  return true;
}

}  // namespace harness
