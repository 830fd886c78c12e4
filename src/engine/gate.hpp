#pragma once

#include <condition_variable>
#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/store/command.hpp>
#include <list>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>

namespace holdfast::engine {

class acquisition;
class hold;
struct spec;

/// The queue of one process for one name: one of its threads represents it at the store, the
/// others wait here, in order. What the store granted to the process goes from thread to thread
/// without the store, for as long as its terms allow (hold::stays_in_process). After that, who
/// leaves takes the next one along: giving the lock back and queueing for the next of this process
/// are one step at the store. Thread-safe.
///
/// A thread that sleeps takes long to wake up. Meanwhile those that run may pass it, but only
/// spec::max_bypass times: then, or as soon as it is awake, it is served next.
///
///     a thread is done, no waiter       │ back to the store; with linger: idle, until a thread
///                                       │ comes, its time is over, or another process wants it
///     a thread is done, with waiters    │ idle, and the first waiter is woken
///       another comes, and may bypass   │ takes what is idle
///       the first waiter is awake       │ takes what is idle; if it is in use, insists
///     a thread is done, and the first   │ the hold goes to the first waiter directly
///       waiter insists, or was bypassed │
///       often enough                    │
class gate {
 public:
  explicit gate(clock& on) : clock_(on) {}

  /// Where a thread stands that wants in.
  enum class entry {
    first,   ///< it represents the process now: ask the store
    asked,   ///< it does, and the one before has asked the store for it: see the acquisition
    passed,  ///< it has what the process holds: see the acquisition
    overloaded,
    timed_out,
    cancelled,
    waiting,  ///< in line: only from join() and look()
  };
  entry enter(acquisition& who, boot_time deadline, std::stop_token stop);

  /// The same without sleeping, for one who is roused by its waker: joins the line, and looks again
  /// when roused, at the deadline and when asked to stop.
  entry join(acquisition& who, boot_time deadline);
  entry look(acquisition& who, boot_time deadline, const std::stop_token& stop);

  /// What the process holds and no thread uses, for one that has just come. Null if there is
  /// nothing, or it is the turn of the first in line.
  std::shared_ptr<hold> take_idle(const spec& wanted);

  /// A thread is done with it. False if it has to go back to the store; else it is not its any
  /// more, and by the time this returns another thread may have ended hold and gate.
  bool pass_on(std::shared_ptr<hold>& done);

  /// What was kept idle for longer than it lingers, to be given back; or when to look again.
  struct lapsed {
    std::shared_ptr<hold> over;
    boot_time again_at = forever;
  };
  lapsed lapse();
  /// Somebody elsewhere wants what this owner holds: gives it out if it is idle, and else sees to
  /// it that it does not linger.
  std::shared_ptr<hold> wanted(const store::owner_id& held);
  /// Something may linger here for as long as somebody may come for it: a lock object that does.
  void expect_one();
  /// The last lock object is gone, or one of several. Returns the idle hold to release, if it was
  /// the last.
  std::shared_ptr<hold> expect_one_less();

  /// The representative goes. The next in line becomes it, and asks for itself.
  void leave();

  /// The representative has somebody it can ask for; null if nobody is in line. Until hand_to() the
  /// one in line waits for that, whatever its deadline.
  acquisition* take_next();
  void hand_to(acquisition& next);

  /// One that joined, and has not looked since it was roused, goes without having been in. False if
  /// it may not yet: it was taken along, and is roused when that is over.
  bool give_up(acquisition& who) noexcept;

  /// How many stand in line.
  std::size_t waiting();

 private:
  friend class acquisition;
  /// What was done to wake the first in line. What is idle is never without somebody who was
  /// called.
  enum class summons { none, called, insists };

  bool still_waits(std::unique_lock<std::mutex>& lock, acquisition& who, boot_time deadline,
                   const std::stop_token& stop, std::shared_ptr<hold>& left_behind);
  bool own_turn(std::unique_lock<std::mutex>& lock, acquisition& who);
  std::shared_ptr<hold> step_out(acquisition& who);
  acquisition& next_in_line();
  void call_first();
  void give_first(std::shared_ptr<hold> what);
  bool have_it_looked_after() noexcept;

  clock& clock_;
  std::mutex mutex_;
  bool occupied_ = false;
  std::list<acquisition*> line_;
  std::shared_ptr<hold> idle_;
  summons first_ = summons::none;
  unsigned bypassed_ = 0;
  unsigned expected_ = 0;
  bool looked_after_ = false;    ///< linger_watch comes by
  boot_time idle_ends_{};        ///< … and gives it back then if it had no turn since
  std::uint64_t idle_turn_ = 0;  ///< whose end it saw when it last came by
  store::owner_id wanted_{};     ///< the hold that somebody elsewhere waits for
};

/// The representative's place at a gate (or at none), which it leaves whatever happens.
class gate_place {
 public:
  explicit gate_place(gate* at) noexcept : gate_(at) {}
  ~gate_place() {
    if (gate_ != nullptr) gate_->leave();
  }
  gate_place(const gate_place&) = delete;
  gate_place& operator=(const gate_place&) = delete;

  acquisition* take_next() { return gate_ == nullptr ? nullptr : gate_->take_next(); }
  void hand_to(acquisition& next) { std::exchange(gate_, nullptr)->hand_to(next); }
  void keep() noexcept { gate_ = nullptr; }

 private:
  gate* gate_;
};

}  // namespace holdfast::engine
