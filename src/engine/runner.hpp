#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/store/store.hpp>
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

#include "engine/mailroom.hpp"
#include "engine/waker.hpp"

namespace holdfast::engine {

class runner;
class store_client;

/// Something that waits without a thread: a state machine whose steps the runner's thread takes.
class errand : public waker, public std::enable_shared_from_this<errand> {
 public:
  explicit errand(engine::runner& on) : runner_(on) {}
  virtual ~errand() = default;
  errand(const errand&) = delete;
  errand& operator=(const errand&) = delete;

  /// What is to be done next.
  struct next {
    bool over = false;                    ///< its receiver has been told
    boot_time until = forever;            ///< step() at the latest then
    std::optional<store::renewal> ask{};  ///< send this, and then answer()
  };

  virtual next step() = 0;
  virtual next answer(result<store::permits_reply> reply, boot_time sent) = 0;
  /// A notice for its owner.
  virtual next take(const store::notice& n) = 0;
  virtual const store::owner_id& owner() const noexcept = 0;
  /// Peers whose death would be news.
  virtual std::vector<std::string> watched() const { return {}; }
  /// The time is over until which runner::tell_at() was asked to wait, and the runner's thread may
  /// be stuck in the store. On a thread of its own.
  virtual void overdue() {}

  /// step() is due. From any thread, as often as one likes.
  void wake() final;

 private:
  friend class runner;
  engine::runner& runner_;
  std::atomic<bool> queued_{false};
  // Of the runner's thread.
  enum class stage { fresh, known, over } stage_ = stage::fresh;
  boot_time due_ = forever;
  std::vector<std::string> watching_;
  // Guarded by the runner's mutex.
  std::optional<std::multimap<boot_time, std::weak_ptr<errand>>::iterator> limit_;
};

/// Carries everything of a session that waits without a thread: one thread, started with the first
/// of them. It asks the store, in batches, for those whose time has come, hands them their notices,
/// and calls what is to be called at the end. That thread may be stuck in the store: a second one,
/// started with the first errand that has a deadline, watches the time. Thread-safe.
class runner {
 public:
  explicit runner(store_client& session) : session_(session) {}
  ~runner() { close(); }

  /// An errand does not keep its session: when that goes, those that are left are made to give up.
  /// Returns when they have.
  void close() noexcept;

  /// errc::unavailable if the system gives no thread.
  status start() noexcept;
  bool on_own_thread() const noexcept {
    const auto me = std::this_thread::get_id();
    return me == id_.load() || me == watch_id_.load();
  }

  /// Calls overdue() then, if there is still such an errand. errc::unavailable if the system gives
  /// no thread.
  status tell_at(boot_time when, const std::shared_ptr<errand>& e) noexcept;

  void push(std::shared_ptr<errand> e);

  /// Stops when the session goes.
  std::stop_token closing() const noexcept { return closing_.get_token(); }

 private:
  void run();
  void watch_time();
  bool sleep_while_idle();
  std::deque<std::shared_ptr<errand>> take_woken();
  void take_due();
  void take_notice(const store::notice& n);
  void work();
  void ask_all();
  void go_on(errand& e, errand::next next);
  void set_due(errand& e, boot_time when);
  void forget_limit(errand& e);

  store_client& session_;
  std::mutex mutex_;
  std::condition_variable idle_;
  std::deque<std::shared_ptr<errand>> woken_;
  std::stop_source closing_;
  std::unique_ptr<mailroom::slot> slot_;
  std::atomic<std::thread::id> id_{};
  std::atomic<std::thread::id> watch_id_{};
  std::multimap<boot_time, std::weak_ptr<errand>> deadlines_;
  std::condition_variable deadlines_changed_;
  bool closed_ = false;
  std::thread thread_;
  std::thread watch_thread_;

  // Of its own thread.
  std::map<store::owner_id, std::shared_ptr<errand>> errands_;
  std::set<std::pair<boot_time, errand*>> times_;
  std::vector<std::pair<errand*, store::renewal>> asking_;
  bool told_to_close_ = false;
};

}  // namespace holdfast::engine
