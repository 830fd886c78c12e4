#include "tool/demo_workers.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

namespace holdfast::tool::demo {
namespace {

[[noreturn]] void fail(const char* call) {
  throw std::system_error{errno, std::generic_category(), call};
}

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&set, s);
  return set;
}

}  // namespace

workers::workers(std::size_t count, body work)
    : work_{std::move(work)}, pids_(count, 0), ready_{make_pipe()}, go_{make_pipe()} {
  const sigset_t set = watched_signals();
  signals_ = unique_fd{signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (!signals_) fail("signalfd");
  sigprocmask(SIG_BLOCK, &set, &old_mask_);
}

workers::~workers() {
  for (std::size_t i = 0; i < pids_.size(); ++i) kill(i);
  for (const pid_t p : pids_) {
    while (p > 0 && waitpid(p, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
}

void workers::start(std::size_t worker) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) be_worker(worker, parent);
  pids_[worker] = child;
}

void workers::be_worker(std::size_t worker, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);  // the parent died before prctl()
  sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
  // ^C reaches the whole group: the parent decides.
  std::signal(SIGINT, SIG_IGN);
  signals_.reset();
  go_.write.reset();
  ready_.read.reset();
  int code = 0;
  {
    const body work = std::move(work_);
    code = work(worker, ready_.write.get(), go_.read.get());
  }
  _exit(code);  // does not flush or destroy the parent's objects a second time
}

void workers::kill(std::size_t worker) const {
  if (pids_[worker] > 0) ::kill(pids_[worker], SIGKILL);
}

bool workers::any_left() const {
  return std::any_of(pids_.begin(), pids_.end(), [](pid_t p) { return p > 0; });
}

workers::occurrence workers::next(std::chrono::milliseconds at_most) {
  std::array<pollfd, 2> both{{{signals_.get(), POLLIN, 0}, {ready_.read.get(), POLLIN, 0}}};
  poll(both.data(), both.size(), static_cast<int>(at_most.count()));
  occurrence seen;
  signalfd_siginfo s{};
  while (read(signals_.get(), &s, sizeof s) == sizeof s) {
    if (s.ssi_signo != SIGCHLD) seen.signal = static_cast<int>(s.ssi_signo);
  }
  if (both[1].revents & POLLIN) seen.ready = count_ready();
  seen.deaths = reap();
  return seen;
}

std::size_t workers::count_ready() {
  std::array<char, 64> bytes{};
  const ssize_t n = read(ready_.read.get(), bytes.data(), bytes.size());
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

/// Waits for our own children only: the program may have others.
std::vector<workers::death> workers::reap() {
  std::vector<death> dead;
  for (std::size_t i = 0; i < pids_.size(); ++i) {
    int status = 0;
    if (pids_[i] <= 0 || waitpid(pids_[i], &status, WNOHANG) != pids_[i]) continue;
    pids_[i] = 0;
    dead.push_back({i, status});
  }
  return dead;
}

}  // namespace holdfast::tool::demo
