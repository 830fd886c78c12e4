#pragma once

#include <future>
#include <holdfast/async.hpp>
#include <holdfast/error.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "simulation/encounters.hpp"
#include "simulation/scene.hpp"

namespace simulation {

/// A thread may be so long on its way from the library to its caller.
inline constexpr nanos way_to_the_caller = millisecond / 10;

/// One thread at one step of its plan: what the thread asks for, and checks of what the library
/// answers.
struct actor {
  scene& of;
  process& p;
  const process_plan& does;
  const step& s;
  std::string name;
  nanos asked = 0;
  /// Of a redlock, which asks its nodes together: for the lock, first the nodes that are well and
  /// then those that it had left alone; for the greatest fence; and to release the grants of a vote
  /// that failed.
  int rounds_of_a_try = 4;

  /// Reports a violation unless the plan or its faults explain the error.
  void judge_error(holdfast::errc code, const std::string& what) const;
  /// Checks that a wait that was asked to stop ended in time.
  void judge_stop() const;
  /// How long the store may keep the entry of a thread that has gone.
  nanos entries_stay() const;
  /// Whether a thread that names another number of permits has used the name since this call began.
  bool is_of_another_size() const;
  /// Whether a thread has used the name as another kind since this call began.
  bool meets_another_kind() const;
  /// Whether an operator took the lock away.
  bool was_taken() const;
  /// A token on which a thread of the same process requests a stop at the planned time.
  std::stop_token stop() const { return stop_in(s.stop_after); }
  std::stop_token stop_in(nanos after) const;
  /// Registers or unregisters this thread as a waiter, for the rule that no thread waits in vain.
  void waits(bool so) const;
  /// Called with the lock acquired: checks that no other waiter has waited much longer.
  void judge_order() const;
  /// The waiter's precedence, where the order is not by arrival alone; 0 otherwise.
  int goes_first() const;
  /// Checks that no waiter with precedence over this thread has waited for long.
  void judge_preference() const;
  /// Whether readers of this process share a hold that nothing ends.
  bool shares_holds() const;
  /// Registers a reader for the rule that readers that wait together acquire together.
  void reads_with_others() const;
  /// Checks that a reader did not join other readers of its process while a writer has long waited.
  void judge_joining(std::uint64_t fence) const;
  /// Checks that a reader that goes before writers shares the hold of its process's readers.
  void judge_sharing(std::uint64_t fence) const;
  /// Checks that this reader passed no writer that has long waited. Returns true if there is such a
  /// writer.
  bool passes_a_writer(const char* rule, bool of_its_process) const;
  std::string later_than(const scene::in_line& other) const;
  /// Reports a violation of the rule if `other` still waits a moment later.
  void passes_one(const char* rule, const scene::in_line& other, std::string how) const;
  /// Whether the plan lets each thread run when it can.
  bool no_thread_is_late() const;
  /// The first check() of a new lease has failed.
  void judge_first_check() const;
  /// Checks that a lease whose time is over is lost. Its thread may be the first that runs when the
  /// process goes on after that time.
  template <class Held>
  void judge_its_time(const Held& held) const {
    if (of.whole.seed < following_seeds) return;
    const auto before = held.remaining();
    const auto so = held.state();
    judge_time(of.rules, name, before, so, held.remaining());
  }
  /// Checks the duration of a wait with a limit.
  void judge_wait(bool got, bool stoppable) const;
  /// Checks that a wait without a limit did not outlast an outage that is longer than
  /// store_timeout.
  void judge_outage() const;
  int commands_of_a_try() const;
  /// The longest time until a waiter continues; `never` if that is not judged.
  nanos soon() const noexcept {
    return of.punctual() && of.whole.tells() ? of.bound_of_waits() : never;
  }

  // ---- helpers for the asynchronous forms
  bool without_waiting() const { return simulation::without_waiting(of.whole, s); }
  holdfast::wait_limit limit() const {
    return s.wait == never ? holdfast::wait_limit{} : holdfast::wait_limit(duration(s.wait));
  }
  template <class T>
  static T value_of(holdfast::pending<T> what) {
    auto how = std::move(what).future().get();
    if (!how) throw holdfast::error(how.error());
    return std::move(*how);
  }
  /// The value, or nothing if the wait timed out.
  template <class T>
  std::optional<T> in_time(holdfast::pending<T> what) const {
    auto how = std::move(what).future().get();
    if (how) return std::move(*how);
    using holdfast::errc;
    const errc code = how.error().code;
    if (code == errc::timed_out && s.wait != never) return std::nullopt;
    if (code == errc::busy && s.wait == 0) return std::nullopt;
    throw holdfast::error(how.error());
  }
};

/// While this object exists, its thread may send at most as many commands as the header promises.
/// The check covers only plans without faults and stores that answer an operation with one command.
class cost {
 public:
  cost(const actor& who, const char* what, std::uint64_t most)
      : who_(who), what_(what), most_(world::self()->commands + most) {}
  cost(const cost&) = delete;
  ~cost();

 private:
  const actor& who_;
  const char* what_;
  const std::uint64_t most_;
};

}  // namespace simulation
