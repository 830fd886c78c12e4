#include <time.h>
#include <algorithm>
#include <cstddef>
#include <holdfast/clock.hpp>
#include <new>

namespace holdfast {

boot_time boot_clock::now() noexcept {
  timespec t{};
  clock_gettime(CLOCK_BOOTTIME, &t);
  return time_point(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
}

boot_time saturated_add(boot_time from, std::chrono::nanoseconds wait) noexcept {
  if (wait <= std::chrono::nanoseconds::zero()) return from;
  const bool overflows = from > boot_time{} && wait >= forever - from;
  return overflows ? forever : from + wait;
}

namespace {

class machine_clock final : public clock {
 public:
  boot_time now() const noexcept override { return boot_clock::now(); }

  void wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                  boot_time until) override {
    if (until == forever) return cv.wait(lock);
    // A condition variable's clock stops while the machine is suspended, and boot_clock does not:
    // the caller checks the time again after a second at most.
    cv.wait_for(lock, std::min<std::chrono::nanoseconds>(until - now(), std::chrono::seconds(1)));
  }

  std::chrono::nanoseconds sleep_for(boot_time until) const noexcept override {
    return until == forever ? std::chrono::nanoseconds::max() : until - now();
  }

  int on_advance(std::function<void()>) override { return 0; }
  void forget(int) noexcept override {}
};

}  // namespace

clock& real_clock() noexcept {
  // Never destroyed: threads of a session may outlive the static objects of a program.
  alignas(machine_clock) static std::byte room[sizeof(machine_clock)];
  static auto* const the_clock = ::new (room) machine_clock;
  return *the_clock;
}

}  // namespace holdfast
