#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/store/command.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "session/worker.hpp"

namespace holdfast::engine {

class store_client;

/// A thread that waits for a name while it holds others.
struct blocked {
  struct has {
    store::owner_id owner{};
    std::string name;
    std::function<bool()> is_over{};  ///< lost, or released; null: never
  };
  store::owner_id id{};  ///< identifies this wait only
  std::string name;
  std::uint32_t weight = 1;
  bool limited = false;  ///< this wait has a time limit
  std::vector<has> holds{};
  std::stop_source stop{};  ///< requested if this wait is the one to end
  std::string story{};      ///< the reason, in that case
};

/// Finds waits that would never end (session_options::detect_deadlocks), over all processes that
/// use the store. A waiter that holds locks puts a mark beside each name that it holds: a record of
/// the store, with a lease of a few seconds, which names the hold that it marks, and the name for
/// which the waiter waits. With the marks a waiter can walk: from the name to its holders, from
/// them by their marks to the names that they wait for, and so on, until it reaches a hold of its
/// own: then the waits form a ring. Marks belong to waits, records to holds. A ring that is seen
/// unchanged again and again, while all its waits are confirmed, is a deadlock. The youngest wait
/// in it ends; if some have a time limit, the youngest of those, because they would have ended the
/// ring. Its own walk finds the ring: a walk follows only waits that are not to end before its own.
///
/// Why this cannot be a false alarm: the first walk that sees the ring ends at a moment E. Each
/// hold in the ring is seen before E and after it, so it lasts at E; otherwise it was lost, and its
/// record was created again by an acquire that was under way for long. A mark is confirmed only by
/// the process whose thread waits, while that thread waits and knows of no loss of that hold, and
/// never before the previous confirmation was answered. Of three confirmations that are seen one
/// after the other, the second was carried out after E or after the walk that follows E, so the
/// third was sent after E. So at E the thread waits, too, and the hold is its own.
class deadlock_watch {
 public:
  explicit deadlock_watch(store_client& session);
  ~deadlock_watch();

  /// Fails with errc::unavailable if the system provides no thread; the observer is notified of
  /// that once.
  status start() noexcept;
  bool on_own_thread() const noexcept { return thread_.is_this_thread(); }

  /// begin(): the thread starts to wait. end(): it has waited; its marks are removed.
  void begin(std::shared_ptr<blocked> who);
  void end(const std::shared_ptr<blocked>& who) noexcept;
  /// The reason why its wait was stopped; empty if it was not stopped by deadlock detection.
  std::string story_of(const blocked& who);

  /// One round for all waiters of this session: removes old marks, confirms the others, and walks.
  /// Called by the thread, or by a test that did not start the thread.
  void round();

  /// The time between two rounds. A single deadlock is detected after four or five rounds.
  static constexpr std::chrono::milliseconds period{125};

  /// A wait that a walk found, and the hold that led to it.
  struct link {
    store::owner_id wait{};
    store::owner_id hold{};
    bool limited = false;
    std::uint64_t age = 0;  ///< greater is younger
    std::int64_t confirmed = 0;
    std::string who;
    std::string has;
    std::string wants;
  };

 private:
  struct watched {
    std::shared_ptr<blocked> who;
    std::set<store::owner_id> marked{};  ///< the holds that have a mark
    std::uint64_t age = 0;               ///< of the wait: the fence of its first mark
    std::vector<link> ring{};            ///< as of the last round
    std::vector<unsigned> confirmations{};
  };
  void run();
  bool idle() const;
  bool marked(const std::shared_ptr<blocked>& who) const;
  void withdraw(const std::vector<std::shared_ptr<blocked>>& gone) noexcept;
  void warn(const failure& why);
  void confirm(watched& w);
  void put_up(watched& w, std::span<const std::string> marks,
              std::span<const store::owner_id> holds);
  std::optional<std::vector<link>> walk(const watched& w);
  void judge(watched& w, std::vector<link> ring);
  void choose(watched& w);
  bool still_waits(const watched& w);

  store_client& session_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<blocked>> waiting_;
  std::vector<std::shared_ptr<blocked>> gone_;
  bool stopping_ = false;
  std::vector<watched> watched_;  ///< for the thread that does the round
  bool warned_ = false;
  std::atomic<bool> warned_of_no_thread_{false};
  worker thread_;
};

/// The name of the record that marks a hold whose thread waits; nothing if the name would be too
/// long.
std::optional<std::string> wait_mark(std::string_view name, const store::owner_id& hold,
                                     std::size_t max_bytes);
/// Whether the name is such a mark, and not a user's name.
bool is_wait_mark(std::string_view name) noexcept;

}  // namespace holdfast::engine
