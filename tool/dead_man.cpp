#include "tool/dead_man.hpp"

#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <new>
#include <system_error>

#include "tool/process_tree.hpp"

namespace holdfast::tool {

namespace {

void* shared_memory(std::size_t bytes) {
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  return at;
}

void ignore_everything() noexcept {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
}

/// A reader of our stdout waits until the last process has closed it; this process must not be the
/// last.
void keep_only(int fd) noexcept {
  if (fd > 0) ::close_range(0, static_cast<unsigned>(fd) - 1, 0);
  ::close_range(static_cast<unsigned>(fd) + 1, ~0U, 0);
}

/// Most programs begin without a child, and need not scan all processes of the machine.
std::vector<process_id> there_already() {
  siginfo_t ignored{};
  const bool childless = ::waitid(P_ALL, 0, &ignored, WEXITED | WNOHANG | WNOWAIT) != 0;
  return childless ? std::vector<process_id>{} : descendants_of(::getpid());
}

}  // namespace

dead_man::dead_man()
    : shared_(new(shared_memory(sizeof(page))) page), pipe_(make_pipe()), others_(there_already()) {
  const pid_t tool = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid_ == 0) serve(*shared_, pipe_.read.get(), tool, others_);
  others_.push_back(identified(pid_));
  pipe_.read.reset();
}

dead_man::~dead_man() {
  stand_down();
  pipe_.write.reset();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  ::munmap(shared_, sizeof(page));
}

void dead_man::watch(pid_t target) noexcept { shared_->target = target; }

void dead_man::kill_at(boot_time at) noexcept {
  const std::int64_t ns = at.time_since_epoch().count();
  const std::int64_t before = shared_->kill_at.exchange(ns);
  // The dead man finds a later time by itself when the earlier one has come.
  if (ns < before) write_all(pipe_.write.get(), "!");
}

void dead_man::stand_down() noexcept { shared_->target = 0; }

std::vector<process_id> dead_man::started_by_us() const {
  return descendants_of(::getpid(), others_);
}

void dead_man::serve(page& shared, int pipe, pid_t tool, std::vector<process_id> others) noexcept {
  others.push_back(identified(::getpid()));
  ignore_everything();
  // ^C and signals to the child's group must not reach this process.
  ::setpgid(0, 0);
  ::prctl(PR_SET_NAME, "holdfast-guard");
  keep_only(pipe);
  const alarm_clock alarm;
  for (;;) {
    const boot_time at{std::chrono::nanoseconds{shared.kill_at.load()}};
    if (boot_clock::now() >= at) strike(shared, tool, others);
    alarm.set(boot_clock::now() >= at ? forever : at);
    std::array<pollfd, 2> wait{{{pipe, POLLIN, 0}, {alarm.fd(), POLLIN, 0}}};
    ::poll(wait.data(), wait.size(), -1);
    std::array<char, 16> bytes{};
    if (wait[0].revents != 0 && ::read(pipe, bytes.data(), bytes.size()) == 0) break;
  }
  strike(shared, tool, others);
  ::_exit(0);
}

// The target cannot be another process that reuses the number. While the tool lives, it reaps the
// child only after it has withdrawn the target. When the tool is gone, the group's number is free
// only if the whole group is gone, and the kernel reuses a number only after all others.
void dead_man::strike(page& shared, pid_t tool, const std::vector<process_id>& others) noexcept {
  const pid_t target = shared.target;
  if (target == 0) return;
  shared.struck = true;  // before the kill: a thread that sees the child dead must see why
  ::kill(target, SIGKILL);
  for (const auto& p : descendants_of(tool, others)) ::kill(p.pid, SIGKILL);
}

}  // namespace holdfast::tool
