#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <holdfast/clock.hpp>
#include <holdfast/store/store.hpp>
#include <memory>

/// For the tests of programs that use holdfast.
namespace holdfast::testing {

/// A clock that moves only by advance(). Give it to session_options::clock with a `memory:` store,
/// which then judges leases by it too: a 30-second lease ends without a wait. Thread-safe.
class fake_clock final : public clock {
 public:
  fake_clock();
  ~fake_clock() override;
  /// Moves the time forward, and wakes all waits on this clock that are over by then. When it
  /// returns, they are woken, but they may not have acted yet.
  void advance(std::chrono::nanoseconds by);
  /// The earliest time until which a thread waits on this clock; `forever` if none does. A thread
  /// that is about to wait "for a second from now" may ask for the time before or after an
  /// advance(): await its wake-up time here first. No round trip, no error.
  boot_time next_wake() const noexcept;

  boot_time now() const noexcept override;
  void wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                  boot_time until) override;
  std::chrono::nanoseconds sleep_for(boot_time until) const noexcept override;
  int on_advance(std::function<void()> wake) override;
  void forget(int id) noexcept override;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// What happens to one command on its way.
enum class fault {
  none,
  drop_request,       ///< never carried out; the caller sees `unavailable`
  drop_reply,         ///< carried out; the caller sees `unavailable` with outcome_unknown
  duplicate,          ///< carried out twice (a rate limiter's take once); the caller sees the first
                      ///< reply, but of an acquire the second
  delay,              ///< carried out after `fault_plan::delay` on the session's clock
  delay_reply,        ///< carried out at once; the answer comes after `fault_plan::delay`
  drop_notification,  ///< carried out; the next notification for this session is lost
};

struct fault_plan {
  /// Called before every command with the command's number, counted from 1; for a batch, called for
  /// all its commands before the first is sent. If several commands are one step at the store, the
  /// step has the worst of their faults: it is dropped if one of them is to be dropped. Called from
  /// several threads.
  std::function<fault(std::uint64_t number, std::string_view name, store::permits_verb verb)>
      choose;
  std::chrono::milliseconds delay{50};
};

/// How many of 1,000 commands have each fault. The same seed gives the same faults in the same
/// order.
struct fault_rates {
  std::uint64_t seed = 1;
  unsigned drop_request = 0;
  unsigned drop_reply = 0;
  unsigned duplicate = 0;
  unsigned drop_notification = 0;
  unsigned delay_reply = 0;
};
fault_plan random_faults(fault_rates rates);

/// For session_options::decorate: a store with the faults of the plan.
std::function<std::unique_ptr<store::session_store>(std::unique_ptr<store::session_store>)> faulty(
    fault_plan plan, std::shared_ptr<clock> on = {});

}  // namespace holdfast::testing
