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

/// Something that waits without a thread: a state machine whose steps the runner's threads take,
/// one at a time.
class operation : public waker, public std::enable_shared_from_this<operation> {
 public:
  explicit operation(engine::runner& on) : runner_(on) {}
  virtual ~operation() = default;
  operation(const operation&) = delete;
  operation& operator=(const operation&) = delete;

  /// What is to be done next.
  struct next {
    bool over = false;                          ///< its receiver has been told
    boot_time until = forever;                  ///< step() at the latest then
    std::optional<store::named_command> ask{};  ///< send this, and then answer()
  };

  virtual next step() = 0;
  virtual next answer(result<store::permits_reply> reply, boot_time sent) = 0;
  /// A notification for its owner.
  virtual next take(const store::notification& n) = 0;
  virtual const store::owner_id& owner() const noexcept = 0;
  /// Peers whose death would be news.
  virtual std::vector<std::string> watched() const { return {}; }
  /// The time of runner::end_by() is over. What it asked, if anything, is not answered any more.
  virtual next overdue() { return {}; }
  /// Its steps wait for the store no longer than that.
  virtual boot_time calls_until() const noexcept { return forever; }
  /// There was no memory for the last step, or for what it wanted next: its receiver is told so, if
  /// it was not told yet, and nothing stays behind. False if it cannot end yet: it will be woken.
  virtual bool broken() noexcept {
    tell_no_memory();
    return true;
  }

  /// step() is due. From any thread, as often as one likes.
  void wake() noexcept final;

 protected:
  engine::runner& its_runner() const noexcept { return runner_; }
  /// The first wake(), after `first`, during which no step is taken, whatever wakes it.
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
  std::vector<std::string> watching_;  // of the thread that takes a step
  // Guarded by the runner's mutex.
  enum class stage : std::uint8_t { fresh, pushed, known, over } stage_ = stage::fresh;
  bool busy_ = false;    ///< a thread takes a step
  bool missed_ = false;  ///< a notification came, …
  bool woken_ = false;   ///< … step() was due, …
  bool late_ = false;    ///< … its time was over before it could be seen to
  const question* asked_ = nullptr;
  boot_time due_ = forever;
  std::shared_ptr<operation> next_woken_;
  std::optional<limits::iterator> limit_;
};

/// Carries everything of a session that waits without a thread. One of its threads leads: it asks
/// the store, in batches, for those whose time has come, hands them their notifications, and calls
/// what is to be called at the end. It may be stuck in the store then. So a second thread, started
/// with the first operation that has a deadline, watches the time, and leads in its place if a
/// deadline passes meanwhile. Both are threads of the callers, started with the first operation.
/// Thread-safe.
class runner {
 public:
  enum class hears {
    notifications,
    nothing,  ///< its operations ask other runners, so no store ever holds them up
  };
  explicit runner(store_client& session, hears what = hears::notifications)
      : session_(session), hears_(what) {}
  ~runner() { close(); }

  /// An operation does not keep its session: when that goes, those that are left are made to give
  /// up. Returns when they have.
  void close() noexcept;

  /// errc::unavailable if the system gives no thread.
  status start() noexcept;

  /// The operation is overdue() then, or when it was to be before, if it has not ended.
  /// errc::unavailable if the system gives no thread.
  status end_by(boot_time when, const std::shared_ptr<operation>& e) noexcept;

  void push(std::shared_ptr<operation> e) noexcept;

  /// Stops when the session goes.
  std::stop_token closing() const noexcept { return closing_.get_token(); }

 private:
  using held = std::unique_lock<std::mutex>;
  using question = operation::question;
  class away;
  /// What a thread has sent, and waits for.
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
  std::unique_ptr<dispatcher::registration> slot_;  ///< none if it hears nothing
  // The threads.
  unsigned threads_ = 0;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread::id leader_;
  std::condition_variable idle_;  ///< the leader's
  bool away_ = false;             ///< … which is in a step or in the store, …
  std::uint64_t steps_ = 0;       ///< … for that time
  bool told_to_close_ = false;
  std::thread::id standby_;
  bool watched_ = false;  ///< there is a standby, or it is being started
  operation::limits limits_;
  std::condition_variable limits_changed_;
  store::wake_time wake_time_;
  // The work.
  linked_line<operation, &operation::next_woken_> woken_;
  std::vector<store::notification> news_;  ///< the last one is the first
  std::multimap<store::owner_id, std::shared_ptr<operation>> operations_;
  std::set<std::pair<boot_time, operation*>> times_;
  std::list<question> asking_;
  std::list<question> behind_;  ///< to be asked when what is under way for the same owner has ended
  batch* under_way_ = nullptr;
};

template <class First>
void operation::wake_after(First first) {
  queued_ = true;
  first();
  runner_.push(shared_from_this());
}

}  // namespace holdfast::engine
