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

#include "session/waker.hpp"

namespace holdfast::engine {

struct lock_config;

/// A hold that may pass from thread to thread of the process; the local queue's view of it.
class transferable {
 public:
  /// Whether it is the hold that `wanted` describes.
  virtual bool fits(const lock_config& wanted) const noexcept = 0;
  /// False if it should return to the store: another session's turn has come, or the hold is in
  /// doubt.
  virtual bool stays_in_process(boot_time now) const noexcept = 0;
  /// False if it should return to the store when no thread of the process wants it.
  virtual bool lingers(boot_time now) const noexcept = 0;
  virtual std::chrono::nanoseconds linger() const noexcept = 0;
  virtual const store::owner_id& owner() const noexcept = 0;
  /// The secret that is sent only with the release, and never earlier.
  virtual const store::owner_id& secret() const noexcept = 0;
  /// Releases an idle hold, which no waiter wants, at the store.
  virtual void give_back() noexcept = 0;
  /// The same within the time for a last answer. The store may hang, and the wait of the caller may
  /// have no limit of its own. The keeper does what is left to do.
  void give_back_soon(boot_time now) noexcept;
  /// Ends a hold that was lost before the next thread had it.
  virtual void forget() noexcept = 0;

 protected:
  ~transferable() = default;
};

/// Is told of a hold that goes to another thread, while it still belongs to the caller.
class departure {
 public:
  virtual void about_to_leave() noexcept = 0;

 protected:
  ~departure() = default;
};

class local_queue;

/// Watches the locks that the process keeps while no thread uses them (lock_options::linger).
class idle_locks {
 public:
  /// The linger time of an idle lock in this local queue may end at `when`.
  virtual void look_at(const std::shared_ptr<local_queue>& at, boot_time when) = 0;

 protected:
  ~idle_locks() = default;
};

/// The state of a waiter at a local queue.
enum class local_entry {
  first,   ///< represents the process now, and has to ask the store
  asked,   ///< represents the process; the representative before it has asked the store for it:
           ///< contender::ask_instead_of()
  passed,  ///< has received the hold of the process: contender::take_passed()
  overloaded,
  gone,     ///< waits no longer: its time is over, or a stop was requested
  waiting,  ///< queued
  chosen,   ///< the representative asks the store for this waiter, which waits for the result also
            ///< after its deadline; returned only by look()
};

/// The local queue's view of a waiter.
class contender {
 public:
  /// Without a waker it belongs to a sleeping thread.
  contender(const lock_config& wants, waker* w) : config_(wants), waker_(w) {}
  contender(const contender&) = delete;
  contender& operator=(const contender&) = delete;

  /// Called by another thread while this contender is in the local queue: requests the lock for it,
  /// and releases `leaving` in the same step. The contender's next answer is the answer to that
  /// request. Returns whether `leaving` held the lock. The contender waits until the call has
  /// ended, whatever happens.
  virtual result<bool> ask_instead_of(const transferable& leaving) noexcept = 0;

  /// The hold that this waiter has received, after local_entry::passed.
  std::shared_ptr<transferable> take_passed() noexcept { return std::move(passed_); }

 protected:
  virtual ~contender() = default;
  /// Until when this waiter waits in the local queue.
  boot_time local_queue_deadline() const noexcept { return deadline_; }

  const lock_config& config_;

 private:
  friend class local_queue;
  void rouse() { waker_ != nullptr ? waker_->wake() : changed_.notify_one(); }

  waker* const waker_;
  boot_time deadline_ = forever;
  // Changed with the local queue's mutex held.
  std::list<contender*>::iterator entry_{};
  bool asks_next_ = false;  ///< in line only until the idle hold that it found is back at the store
  std::atomic<local_entry> in_local_queue_{local_entry::gone};
  std::condition_variable changed_;
  std::shared_ptr<transferable> passed_;
};

/// The queue of one process for one name. One of its threads represents the process at the store;
/// the others wait here, in order. A grant to the process passes from thread to thread without the
/// store, as long as its terms allow (transferable::stays_in_process). After that, a release also
/// requests the lock for the next waiter of this process: the store releases and queues in one
/// step. Thread-safe.
///
/// A sleeping thread takes long to wake up. Meanwhile running threads may bypass it, but only
/// lock_config::max_bypass times. After that, or as soon as it is awake, it is served next.
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
  /// Enters the queue. A contender that has to wait calls look() when its waker was called, at the
  /// deadline, and when asked to stop; or sleep(), if it has no waker.
  entry join(contender& who, boot_time deadline);
  entry look(contender& who, boot_time deadline, const std::stop_token& stop);
  entry sleep(contender& who, boot_time deadline, std::stop_token stop);

  /// Returns the idle hold of the process, for a thread that has just arrived. Null if there is
  /// none, if it does not fit `wanted`, or if the first waiter's turn has come.
  std::shared_ptr<transferable> take_idle(const lock_config& wanted);

  /// Called when a thread has finished with `done`. Returns false if the hold has to return to the
  /// store. Otherwise it no longer belongs to the caller: when this returns, another thread may
  /// have ended the hold and the local queue. `watched`, if not null, is told before.
  bool pass_on(std::shared_ptr<transferable>& done, departure* watched = nullptr);

  /// A hold that was idle for longer than it lingers, to be released; or the time to check again.
  struct lapsed {
    std::shared_ptr<transferable> over;
    boot_time again_at = forever;
  };
  lapsed lapse();
  /// Another session wants the lock that this owner holds: returns the hold if it is idle;
  /// otherwise makes sure that it will not linger.
  std::shared_ptr<transferable> wanted(const store::owner_id& held);
  /// Registers a lock object that lingers: a hold may linger here while such objects exist.
  void expect_one();
  /// Unregisters such a lock object. If it was the last one, returns the idle hold, to be released.
  std::shared_ptr<transferable> expect_one_less();

  /// The representative leaves. The next waiter takes its place, and asks the store itself.
  void leave();

  /// Chooses the waiter for which the representative can ask; null if none is queued. Until
  /// hand_to() that waiter waits, whatever its deadline.
  contender* take_next();
  void hand_to(contender& next);

  /// Removes a contender that has joined, and has not called look() since it was woken, without
  /// entering. Returns false if it cannot leave yet: another thread is asking for it, and will wake
  /// it when that is over.
  bool give_up(contender& who) noexcept;

  /// The number of queued waiters.
  std::size_t waiting();

 private:
  /// What was done to wake the first waiter. While there are waiters, an idle hold implies that one
  /// of them was called.
  enum class summons { none, called, insists };

  bool still_waits(std::unique_lock<std::mutex>& lock, contender& who, boot_time deadline,
                   const std::stop_token& stop, std::shared_ptr<transferable>& left_behind);
  bool own_turn(std::unique_lock<std::mutex>& lock, contender& who);
  std::shared_ptr<transferable> step_out(contender& who);
  std::size_t behind_another() const;
  contender& next_in_line();
  /// For another waiter that is the first in line from now on.
  void first_not_called();
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
  bool looked_after_ = false;  ///< idle_lock_timer will check the hold
  boot_time idle_ends_{};      ///< when the timer releases the idle hold, if it has no turn before
  bool used_again_ = false;    ///< since the timer's last check
  store::owner_id wanted_{};   ///< the hold that another session waits for
};

/// The representative's turn in a local queue (if any). The destructor ends the turn, unless it was
/// handed over or kept.
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
