#pragma once

#include <future>
#include <holdfast/async.hpp>
#include <holdfast/error.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "simulation/scene.hpp"

namespace simulation {

/// One thread at one step: what it wants, and what it is told.
struct actor {
  scene& of;
  process& p;
  const process_plan& does;
  const step& s;
  std::string name;
  nanos asked = 0;

  /// An error that nothing excuses is a finding.
  void judge_error(holdfast::errc code, const std::string& what) const;
  /// It was asked to stop, and did.
  void judge_stop() const;
  /// An operator took it.
  bool was_taken() const;
  /// Stops when the step says; its thread is the process's.
  std::stop_token stop() const { return stop_in(s.stop_after); }
  std::stop_token stop_in(nanos after) const;
  /// For the rule that nobody waits in vain.
  void waits(bool so) const;
  /// It has what others have waited for much longer.
  void judge_order() const;
  /// How early it is served, where that is not by the order of arrival alone.
  int goes_first() const;
  /// It got the lock although waiters with precedence have long waited for it.
  void judge_preference() const;
  /// Readers of its process share a hold, and nothing ends it.
  bool shares_holds() const;
  /// For the rule that readers that wait together get it together.
  void reads_with_others() const;
  /// It reads beside others of its process.
  void judge_joining(std::uint64_t fence) const;
  /// True if there is one.
  bool passes_a_writer(const char* rule, bool of_its_process) const;
  std::string later_than(const scene::in_line& other) const;
  /// Breaks the rule if the other one still waits in a moment.
  void passes_one(const char* rule, const scene::in_line& other, std::string how) const;
  /// After a wait with a limit.
  void judge_wait(bool got, bool stoppable) const;
  int commands_of_a_try() const;
  /// The longest time until a waiter goes on; never if that is not judged.
  nanos soon() const noexcept {
    return of.punctual() && of.whole.tells() ? of.bound_of_waits() : never;
  }

  // ---- by the forms that do not wait
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
  /// Nothing if it was not in time.
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

/// For as long as it exists, the thread sends no more commands than the header says; asked where
/// nothing goes wrong, of stores that answer an operation by one command.
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
