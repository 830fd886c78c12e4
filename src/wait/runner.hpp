#pragma once

#include <atomic>
#include <condition_variable>
#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/store/store.hpp>
#include <holdfast/store/wake_time.hpp>
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

/// Something that waits without a thread: a state machine whose steps the runner's thread takes.
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
  /// The time is over until which runner::tell_at() was asked to wait, and the runner's thread may
  /// be stuck in the store. On a thread of its own.
  virtual void overdue() noexcept {}
  /// There was no memory for the last step, or for what it wanted next: its receiver is told so, if
  /// it was not told yet, and nothing stays behind. False if it cannot end yet: it will be woken.
  virtual bool broken() noexcept {
    tell_no_memory();
    return true;
  }

  /// step() is due. From any thread, as often as one likes.
  void wake() noexcept final;

 protected:
  virtual void tell_no_memory() noexcept = 0;

 private:
  friend class runner;
  engine::runner& runner_;
  std::atomic<bool> queued_{false};
  // Of the runner's thread.
  enum class stage { fresh, known, over } stage_ = stage::fresh;
  boot_time due_ = forever;
  std::vector<std::string> watching_;
  // Guarded by the runner's mutex.
  std::shared_ptr<operation> next_woken_;
  std::optional<std::multimap<boot_time, std::weak_ptr<operation>>::iterator> limit_;
};

/// Carries everything of a session that waits without a thread: one thread, started with the first
/// of them. It asks the store, in batches, for those whose time has come, hands them their
/// notifications, and calls what is to be called at the end. That thread may be stuck in the store:
/// a second one, started with the first operation that has a deadline, watches the time.
/// Thread-safe.
class runner {
 public:
  explicit runner(store_client& session) : session_(session) {}
  ~runner() { close(); }

  /// An operation does not keep its session: when that goes, those that are left are made to give
  /// up. Returns when they have.
  void close() noexcept;

  /// errc::unavailable if the system gives no thread.
  status start() noexcept;
  bool on_own_thread() const noexcept {
    const auto me = std::this_thread::get_id();
    return me == id_.load() || me == watch_id_.load();
  }

  /// Calls overdue() then, or when it was asked to before, if there is still such an operation.
  /// errc::unavailable if the system gives no thread.
  status tell_at(boot_time when, const std::shared_ptr<operation>& e) noexcept;
  /// Grows with each step that its thread takes: whether that is stuck in the store.
  std::uint64_t steps() const noexcept { return steps_.load(std::memory_order_relaxed); }

  void push(std::shared_ptr<operation> e) noexcept;

  /// Stops when the session goes.
  std::stop_token closing() const noexcept { return closing_.get_token(); }

 private:
  void run();
  void watch_time();
  using woken_line = linked_line<operation, &operation::next_woken_>;
  bool sleep_while_idle();
  std::vector<store::notification> collect(boot_time until) noexcept;
  void take_woken(woken_line& taken) noexcept;
  void take_due() noexcept;
  void take_notification(const store::notification& n) noexcept;
  void work() noexcept;
  void ask_all() noexcept;
  template <class Step>
  void take_step(operation& e, Step step) noexcept;
  void go_on(operation& e, operation::next next);
  void end(operation& e) noexcept;
  void set_due(operation& e, boot_time when);
  void forget_limit(operation& e) noexcept;

  store_client& session_;
  std::mutex mutex_;
  std::condition_variable idle_;
  woken_line woken_;
  std::stop_source closing_;
  std::unique_ptr<dispatcher::registration> slot_;
  std::atomic<std::thread::id> id_{};
  std::atomic<std::thread::id> watch_id_{};
  std::multimap<boot_time, std::weak_ptr<operation>> deadlines_;
  std::atomic<std::uint64_t> steps_{0};
  std::condition_variable deadlines_changed_;
  store::wake_time wake_time_;  ///< of the thread that watches them
  bool closed_ = false;
  std::thread thread_;
  std::thread watch_thread_;

  // Of its own thread.
  std::map<store::owner_id, std::shared_ptr<operation>> operations_;
  std::set<std::pair<boot_time, operation*>> times_;
  std::vector<std::pair<operation*, store::named_command>> asking_;
  bool told_to_close_ = false;
};

}  // namespace holdfast::engine
