#include "bench/workers.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <system_error>

namespace bench {
namespace {

using namespace std::chrono_literals;
constexpr auto too_long = 120s;
constexpr auto look_every = 50ms;

struct two_ends {
  int read, write;
};

two_ends make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error{errno, std::generic_category(), "pipe2"};
  return {ends[0], ends[1]};
}

void keep_over_exec(int fd) { fcntl(fd, F_SETFD, 0); }

}  // namespace

workers::workers(shared_state_mapping& shared, bool processes)
    : shared_state_{shared}, members_(shared->processes) {
  if (processes || members_.size() > 1) {
    for (unsigned i = 0; i < members_.size(); ++i) start_process(i);
  } else {
    start_thread();
  }
  expect('r');
}

workers::member::~member() {
  if (pid > 0) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  if (to >= 0) close(to);  // a thread ends when the commanding end is closed
  if (thread.joinable()) thread.join();
  if (from >= 0) close(from);
}

void workers::start_process(unsigned number) {
  const two_ends commands = make_pipe(), answers = make_pipe();
  const std::string words[] = {"holdfast-bench",
                               "--member",
                               shared_state_.file().string(),
                               std::to_string(number),
                               std::to_string(commands.read),
                               std::to_string(answers.write)};
  char* argv[std::size(words) + 1] = {};
  for (std::size_t i = 0; i < std::size(words); ++i) argv[i] = const_cast<char*>(words[i].c_str());
  const pid_t child = fork();
  if (child < 0) throw std::system_error{errno, std::generic_category(), "fork"};
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    keep_over_exec(commands.read);
    keep_over_exec(answers.write);
    execv("/proc/self/exe", argv);
    _exit(127);
  }
  close(commands.read);
  close(answers.write);
  members_[number].pid = child;
  members_[number].to = commands.write;
  members_[number].from = answers.read;
}

void workers::start_thread() {
  const two_ends commands = make_pipe(), answers = make_pipe();
  members_[0].to = commands.write;
  members_[0].from = answers.read;
  members_[0].thread = std::thread{[this, commands, answers] {
    take_part(*shared_state_, 0, commands.read, answers.write);
    close(commands.read);
    close(answers.write);
  }};
}

void workers::tell(char what) const {
  for (const auto& m : members_) {
    if (write(m.to, &what, 1) != 1) member_died();
  }
}

void workers::expect(char answer) const {
  for (const auto& m : members_) expect_from(m, answer);
}

void workers::expect_from(const member& m, char answer) const {
  pollfd one{m.from, POLLIN, 0};
  char heard = 0;
  if (poll(&one, 1, std::chrono::milliseconds{too_long}.count()) == 0) {
    throw std::runtime_error{"a member did not answer for too long"};
  }
  if (read(m.from, &heard, 1) != 1 || heard != answer) member_died();
}

void workers::check_alive() const {
  for (const auto& m : members_) {
    pollfd one{m.from, POLLIN, 0};
    if (poll(&one, 1, 0) != 0) member_died();  // nothing was requested: it can only be the end
  }
}

void workers::member_died() const {
  throw std::runtime_error{shared_state_->problem[0] ? shared_state_->problem : "a member died"};
}

void workers::count(bool after) const {
  const char what = after ? 'a' : 'b';
  tell(what);
  expect(what);
}

void workers::await(const baton& b, std::uint32_t value) const {
  const auto until = clock::now() + too_long;
  while (!b.wait_for(value, look_every)) {
    check_alive();
    if (clock::now() > until) throw std::runtime_error{"no end was in sight"};
  }
}

void workers::await_waiters(unsigned first) const {
  const auto until = clock::now() + too_long;
  for (unsigned i = first; i < shared_state_->threads;) {
    const participant& s = shared_state_->participants[i];
    if (s.trying && is_asleep(s.tid)) {
      ++i;
      continue;
    }
    check_alive();
    if (clock::now() > until) throw std::runtime_error{"not everybody came to wait"};
    std::this_thread::yield();
  }
}

void workers::let_pass(std::chrono::milliseconds length) const {
  const baton never{};
  for (const auto until = clock::now() + length; clock::now() < until;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now());
    never.wait_for(1, std::min<std::chrono::milliseconds>(left, look_every));
    check_alive();
  }
}

void workers::join() const {
  tell('j');
  expect('j');
}

}  // namespace bench
