#include "harness/fault_proxy.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

namespace harness {

fault_proxy::fault_proxy(int to)
    : relay_({}, {.port = static_cast<std::uint16_t>(to)}),
      port_(relay_.port()),
      wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { work(); }) {}

fault_proxy::~fault_proxy() {
  post([this] { over_ = true; });
  thread_.join();
  ::close(wake_fd_);
}

void fault_proxy::post(std::function<void()> job) {
  {
    const std::lock_guard guard{mutex_};
    jobs_.push_back(std::move(job));
  }
  const std::uint64_t one = 1;
  (void)!::write(wake_fd_, &one, sizeof one);
}

void fault_proxy::work() {
  while (!over_) {
    if (!relay_.turn(wake_fd_)) continue;
    std::uint64_t count = 0;
    (void)!::read(wake_fd_, &count, sizeof count);
    std::vector<std::function<void()>> now;
    {
      const std::lock_guard guard{mutex_};
      now.swap(jobs_);
    }
    for (auto& job : now) job();
  }
}

}  // namespace harness
