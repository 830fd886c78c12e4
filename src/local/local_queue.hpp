#pragma once

#include <atomic>
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

#include "local/idle_locks.hpp"
#include "session/waker.hpp"

namespace holdfast::engine {

struct lock_config;

/// Something held that may go from thread to thread of the process, as the local queue sees it.
class transferable {
 public:
  /// What `wanted` asks for is what this is.
  virtual bool fits(const lock_config& wanted) const noexcept = 0;
  /// False if it should go back to the store: the turn of another session, or in doubt.
  virtual bool stays_in_process(boot_time now) const noexcept = 0;
  /// False if it should go back to the store when no thread of the process wants it.
  virtual bool lingers(boot_time now) const noexcept = 0;
  virtual std::chrono::nanoseconds linger() const noexcept = 0;
  virtual std::uint64_t fence() const noexcept = 0;
  virtual const store::owner_id& owner() const noexcept = 0;
  /// Said with the release only, and never before.
  virtual const store::owner_id& secret() const noexcept = 0;
  /// To the store: it is idle, and nobody wants it.
  virtual void give_back() noexcept = 0;
  /// The end of one that was lost before the next thread had it.
  virtual void forget() noexcept = 0;

 protected:
  ~transferable() = default;
};

/// Where a waiter stands that wants in at a local queue.
enum class local_entry {
  first,   ///< it represents the process now: ask the store
  asked,   ///< it does, and the one before has asked the store for it: see the contender
  passed,  ///< it has what the process holds: see the contender
  overloaded,
  gone,     ///< it waits no longer: its time is over, or it was asked to stop
  waiting,  ///< queued: only from join() and look()
  chosen,   ///< queued, and about to have what the process holds: wait for it also after the
            ///< deadline; only from look()
};

/// A waiter, as the local queue sees it.
class contender {
 public:
  /// Without a waker it is a thread's, which sleeps.
  contender(const lock_config& wants, waker* w) : config_(wants), waker_(w) {}
  contender(const contender&) = delete;
  contender& operator=(const contender&) = delete;

  /// Asks for it from another thread while it stands at the local queue, and in the same step gives
  /// back what `leaving` is. What it is told next is the answer to that. True if `leaving` held it.
  /// Whatever happens: this one waits for the end of it.
  virtual result<bool> ask_instead_of(const transferable& leaving) noexcept = 0;

  /// What the thread before left to this one, after local_entry::passed.
  std::shared_ptr<transferable> take_passed() noexcept { return std::move(passed_); }

 protected:
  virtual ~contender() = default;
  /// Until when it waits there.
  boot_time local_queue_deadline() const noexcept { return deadline_; }

  const lock_config& config_;

 private:
  friend class local_queue;
  void rouse() { waker_ != nullptr ? waker_->wake() : changed_.notify_one(); }

  waker* const waker_;
  boot_time deadline_ = forever;
  // Changed with the local queue's mutex held.
  std::list<contender*>::iterator entry_{};
  std::atomic<local_entry> in_local_queue_{local_entry::gone};
  std::condition_variable changed_;
  std::shared_ptr<transferable> passed_;
};

/// The queue of one process for one name: one of its threads represents it at the store, the
/// others wait here, in order. What the store granted to the process goes from thread to thread
/// without the store, for as long as its terms allow (transferable::stays_in_process). After that,
/// a release takes the next one along: giving the lock back and queueing for the next of this
/// process are one step at the store. Thread-safe.
///
/// A thread that sleeps takes long to wake up. Meanwhile those that run may pass it, but only
/// lock_config::max_bypass times: then, or as soon as it is awake, it is served next.
///
///     a thread is done, no waiter       │ back to the store; with linger: idle, until a thread
///                                       │ comes, its time is over, or another process wants it
///     a thread is done, with waiters    │ idle, and the first waiter is woken
///       another comes, and may bypass   │ takes what is idle
///       the first waiter is awake       │ takes what is idle; if it is in use, insists
///     a thread is done, and the first   │ the hold goes to the first waiter directly
///       waiter insists, or was bypassed │
///       often enough                    │
class local_queue : public std::enable_shared_from_this<local_queue> {
 public:
  local_queue(clock& on, idle_locks& idle) : clock_(on), idle_locks_(idle) {}

  using entry = local_entry;
  entry enter(contender& who, boot_time deadline, std::stop_token stop);

  /// The same without sleeping, for a waiter that its waker rouses: joins the queue, and looks
  /// again when roused, at the deadline and when asked to stop.
  entry join(contender& who, boot_time deadline);
  entry look(contender& who, boot_time deadline, const std::stop_token& stop);

  /// What the process holds and no thread uses, for one that has just come. Null if there is
  /// nothing, or it is the turn of the first waiter.
  std::shared_ptr<transferable> take_idle(const lock_config& wanted);

  /// A thread is done with it. False if it has to go back to the store; else it is not its any
  /// more, and by the time this returns another thread may have ended hold and local queue.
  bool pass_on(std::shared_ptr<transferable>& done);

  /// What was kept idle for longer than it lingers, to be given back; or when to look again.
  struct lapsed {
    std::shared_ptr<transferable> over;
    boot_time again_at = forever;
  };
  lapsed lapse();
  /// Another session wants what this owner holds: gives it out if it is idle, and else sees to
  /// it that it does not linger.
  std::shared_ptr<transferable> wanted(const store::owner_id& held);
  /// A hold may linger here for as long as it may be wanted: by a lock object that lingers.
  void expect_one();
  /// The last lock object is gone, or one of several. Returns the idle hold to release, if it was
  /// the last.
  std::shared_ptr<transferable> expect_one_less();

  /// The representative goes. The next waiter becomes it, and asks for itself.
  void leave();

  /// The waiter that the representative can ask for; null if nobody is queued. Until hand_to() that
  /// waiter waits, whatever its deadline.
  contender* take_next();
  void hand_to(contender& next);

  /// One that joined, and has not looked since it was roused, goes without having been in. False if
  /// it may not yet: it was taken along, and is roused when that is over.
  bool give_up(contender& who) noexcept;

  /// How many are queued.
  std::size_t waiting();

 private:
  /// What was done to wake the first waiter. While waiters are there, an idle hold has always
  /// called one of them.
  enum class summons { none, called, insists };

  bool still_waits(std::unique_lock<std::mutex>& lock, contender& who, boot_time deadline,
                   const std::stop_token& stop, std::shared_ptr<transferable>& left_behind);
  bool own_turn(std::unique_lock<std::mutex>& lock, contender& who);
  std::shared_ptr<transferable> step_out(contender& who);
  contender& next_in_line();
  void call_first();
  void give_first(std::shared_ptr<transferable> what);
  bool have_it_looked_after() noexcept;

  clock& clock_;
  idle_locks& idle_locks_;
  std::mutex mutex_;
  bool occupied_ = false;
  std::list<contender*> line_;
  std::shared_ptr<transferable> idle_;
  summons first_ = summons::none;
  unsigned bypassed_ = 0;
  unsigned expected_ = 0;
  bool looked_after_ = false;    ///< idle_lock_timer comes by
  boot_time idle_ends_{};        ///< … and gives it back then if it had no turn since
  std::uint64_t idle_turn_ = 0;  ///< whose end it saw when it last came by
  store::owner_id wanted_{};     ///< the hold for which another session waits
};

/// The representative's turn at a local queue (or at none), which it ends whatever happens.
class local_turn {
 public:
  explicit local_turn(local_queue* at) noexcept : local_queue_(at) {}
  ~local_turn() {
    if (local_queue_ != nullptr) local_queue_->leave();
  }
  local_turn(const local_turn&) = delete;
  local_turn& operator=(const local_turn&) = delete;

  contender* take_next() { return local_queue_ == nullptr ? nullptr : local_queue_->take_next(); }
  void hand_to(contender& next) { std::exchange(local_queue_, nullptr)->hand_to(next); }
  void keep() noexcept { local_queue_ = nullptr; }

 private:
  local_queue* local_queue_;
};

}  // namespace holdfast::engine
