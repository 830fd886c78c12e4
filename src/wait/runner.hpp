#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/store/store.hpp>
#include <holdfast/store/wake_time.hpp>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "session/dispatcher.hpp"
#include "session/linked_line.hpp"
#include "session/waker.hpp"

namespace holdfast::engine {

class runner;
class store_client;

/// A wait without a thread of its own: a state machine whose steps are taken by the runner's
/// threads, one at a time.
class operation : public waker, public std::enable_shared_from_this<operation> {
 public:
  explicit operation(engine::runner& on) : runner_(on) {}
  virtual ~operation() = default;
  operation(const operation&) = delete;
  operation& operator=(const operation&) = delete;

  /// What the runner does next with the operation.
  struct next {
    bool over = false;                          ///< its receiver has been called
    boot_time until = forever;                  ///< call step() then, at the latest
    std::optional<store::named_command> ask{};  ///< send this, then call answer()
  };

  virtual next step() = 0;
  virtual next answer(result<store::permits_reply> reply, boot_time sent) = 0;
  /// Takes a notification for its owner.
  virtual next take(const store::notification& n) = 0;
  virtual const store::owner_id& owner() const noexcept = 0;
  /// The peers whose death the operation wants to be notified of.
  virtual std::vector<std::string> watched() const { return {}; }
  /// Called when the time of runner::end_by() has passed. A pending answer is not delivered any
  /// more.
  virtual next overdue() { return {}; }
  /// The time limit of the store calls made in its steps.
  virtual boot_time calls_until() const noexcept { return forever; }
  /// Called when there was no memory for the last step, or for what that step wanted next: reports
  /// that to the receiver, unless the receiver was called already, and leaves nothing at the store.
  /// Returns false if the operation cannot end yet; it will be woken.
  virtual bool broken() noexcept {
    tell_no_memory();
    return true;
  }

  /// Makes step() due. May be called from any thread, any number of times.
  void wake() noexcept final;

 protected:
  engine::runner& its_runner() const noexcept { return runner_; }
  /// Calls `first`, then wakes the operation for the first time. No step is taken during `first`,
  /// even if the operation is woken meanwhile.
  template <class First>
  void wake_after(First first);
  virtual void tell_no_memory() noexcept = 0;

 private:
  friend class runner;
  using limits = std::multimap<boot_time, std::weak_ptr<operation>>;
  struct question {
    std::shared_ptr<operation> of;
    store::named_command what;
    bool sent = false;
  };

  engine::runner& runner_;
  std::atomic<bool> queued_{false};
  std::vector<std::string> watching_;  // only for the thread that takes a step
  // Guarded by the runner's mutex.
  enum class stage : std::uint8_t { fresh, pushed, known, over } stage_ = stage::fresh;
  bool busy_ = false;    ///< a thread is taking a step
  bool missed_ = false;  ///< a notification came meanwhile
  bool woken_ = false;   ///< step() became due meanwhile
  bool late_ = false;    ///< its time limit passed meanwhile
  const question* asked_ = nullptr;
  boot_time due_ = forever;
  std::shared_ptr<operation> next_woken_;
  std::optional<limits::iterator> limit_;
};

/// Carries out all operations of a session that wait without a thread. One of its threads leads: it
/// sends the requests that are due to the store in batches, delivers notifications to the
/// operations, and calls the receivers at the end. The leading thread may get stuck in one of these
/// calls. Therefore a second thread, started with the first operation that has a deadline, watches
/// the time, and takes over the lead if a deadline passes meanwhile. Both threads belong to the
/// session's callers, and are started on demand. Thread-safe.
class runner {
 public:
  enum class hears {
    notifications,
    nothing,  ///< its operations use other runners to ask, so no store ever blocks its threads
  };
  explicit runner(store_client& session, hears what = hears::notifications)
      : session_(session), hears_(what) {}
  ~runner() { close(); }

  /// Makes the remaining operations give up, and returns when they have. Called when the session
  /// ends: operations do not keep their session alive.
  void close() noexcept;

  /// Fails with errc::unavailable if the system provides no thread.
  status start() noexcept;

  /// Calls overdue() on the operation at `when`, or earlier if an earlier limit was set, unless it
  /// has ended. Fails with errc::unavailable if the system provides no thread.
  status end_by(boot_time when, const std::shared_ptr<operation>& e) noexcept;

  void push(std::shared_ptr<operation> e) noexcept;

  /// A stop is requested on this token when the session ends.
  std::stop_token closing() const noexcept { return closing_.get_token(); }

 private:
  using held = std::unique_lock<std::mutex>;
  using question = operation::question;
  class away;
  /// The requests that a thread has sent, and whose answers it waits for.
  struct batch {
    std::list<question> asked{};
    batch* other = nullptr;
  };

  status add_thread() noexcept;
  void run() noexcept;
  bool leads() const noexcept { return leader_ == std::this_thread::get_id(); }
  void rouse_leader() noexcept;
  bool overdue() const noexcept;
  void stand_by(held& lock) noexcept;
  void lead(held& lock) noexcept;
  bool sleep_while_idle(held& lock) noexcept;
  void collect(held& lock) noexcept;
  void take_overdue(held& lock) noexcept;
  void take_news(held& lock) noexcept;
  void take_due() noexcept;
  void work(held& lock) noexcept;
  void ask_all(held& lock) noexcept;
  void take_questions(std::list<question>& of_this_batch) noexcept;
  bool has_to_wait(const question& q) const noexcept;
  void answered(batch& mine) noexcept;
  std::vector<result<store::permits_reply>> ask(const std::list<question>& all) noexcept;
  template <class Step>
  void take_step(held& lock, std::shared_ptr<operation> e, Step step) noexcept;
  void go_on(operation& e, const operation::next& next);
  void catch_up(held& lock, std::shared_ptr<operation> e) noexcept;
  void leave_question(operation& e) noexcept;
  void end(held& lock, std::shared_ptr<operation> e) noexcept;
  void wake(std::shared_ptr<operation> e) noexcept;
  void set_due(operation& e, boot_time when);

  void listen(bool on) noexcept;

  store_client& session_;
  const hears hears_;
  std::stop_source closing_;
  std::mutex mutex_;
  /// Null if this runner receives no notifications.
  std::unique_ptr<dispatcher::registration> slot_;
  // The threads.
  unsigned threads_ = 0;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread::id leader_;
  std::condition_variable idle_;  ///< the leader sleeps on this
  bool away_ = false;             ///< the leader is in a step or in a store call
  std::uint64_t steps_ = 0;       ///< number of times that the leader has been away
  bool told_to_close_ = false;
  std::thread::id standby_;
  bool watched_ = false;  ///< a standby thread exists, or is being started
  operation::limits limits_;
  std::condition_variable limits_changed_;
  store::wake_time wake_time_;
  // The work.
  linked_line<operation, &operation::next_woken_> woken_;
  std::vector<store::notification> news_;  ///< in reverse order
  std::multimap<store::owner_id, std::shared_ptr<operation>> operations_;
  std::set<std::pair<boot_time, operation*>> times_;
  std::list<question> asking_;
  /// Requests that wait until an earlier one of the same owner has ended.
  std::list<question> behind_;
  batch* under_way_ = nullptr;
};

template <class First>
void operation::wake_after(First first) {
  queued_ = true;
  first();
  runner_.push(shared_from_this());
}

}  // namespace holdfast::engine
