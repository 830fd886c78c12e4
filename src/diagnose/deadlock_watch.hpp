#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/store/command.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "session/worker.hpp"

namespace holdfast::engine {

class store_client;

/// A thread that waits for a name while it has others.
struct blocked {
  struct has {
    store::owner_id owner{};
    std::string name;
    std::function<bool()> is_over{};  ///< lost, or given back; none: never
  };
  store::owner_id id{};  ///< of this wait, and of no other
  std::string name;
  std::uint32_t weight = 1;
  bool limited = false;  ///< this wait has a time limit
  std::vector<has> holds{};
  std::stop_source stop{};  ///< asked when this wait is the one to end
  std::string story{};      ///< … and then says why
};

/// Finds waits that would never end (session_options::detect_deadlocks), over all processes that
/// use the store. A waiter that holds something puts a mark beside each name that it holds: a
/// record of the store, with a lease of a few seconds, which says for whose hold it stands and what
/// is waited for. So a waiter can walk: from the name to its holders, from them by their marks to
/// what they wait for, and so on, until it comes to a hold of its own. Marks belong to waits,
/// records to holds; so a ring that is seen the same again and again, while all waits in it are
/// confirmed, is one. The youngest wait in it ends: of those with a time limit, if there are any,
/// for they would have ended the ring.
///
/// That it cannot be a false alarm: the first walk that sees the ring ends at a moment E. Each hold
/// in it is seen before E and after, so it lasts at E: or it is lost, and its record came again by
/// an acquire that was on its way for long. A mark is confirmed only by the process whose thread
/// waits, while it waits and knows of no loss of that hold, and never before the confirmation
/// before was answered. Of three confirmations that are seen one after the other the second was
/// carried out after E or after the walk that follows it, so the third was sent after E: at E the
/// thread waits, too, and the hold is its own.
class deadlock_watch {
 public:
  explicit deadlock_watch(store_client& session);
  ~deadlock_watch();

  /// errc::unavailable if the system gives no thread: the observer is told, once.
  status start() noexcept;
  bool on_own_thread() const noexcept { return thread_.is_this_thread(); }

  /// From now on it waits; it has waited, and nothing of it stays.
  void begin(std::shared_ptr<blocked> who);
  void end(const std::shared_ptr<blocked>& who) noexcept;
  /// Why it was asked to stop; empty if it was not, or not by deadlock detection.
  std::string story_of(const blocked& who);

  /// One look, for all that wait: takes old marks away, confirms the others, walks. By the thread,
  /// or by a test that did not start it.
  void round();

  /// Between two rounds. A lone wait is found out after four or five.
  static constexpr std::chrono::milliseconds period{125};

  /// A wait that was met on the way, and the hold that it was met by.
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
    std::map<store::owner_id, std::uint64_t> ages{};  ///< by hold, of the marks that stand
    std::vector<link> ring{};                         ///< as it was seen last
    std::vector<unsigned> confirmations{};
  };
  void run();
  bool idle() const;
  bool marked(const std::shared_ptr<blocked>& who) const;
  void withdraw(const std::vector<std::shared_ptr<blocked>>& gone);
  void warn(const failure& why);
  void confirm(watched& w);
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
  std::vector<watched> watched_;  ///< of the thread that does the round
  bool warned_ = false;
  std::atomic<bool> warned_of_no_thread_{false};
  worker thread_;
};

/// The record that marks a hold whose thread waits; nothing if the name is too long to have one.
std::optional<std::string> wait_mark(std::string_view name, const store::owner_id& hold,
                                     std::size_t max_bytes);
/// Not a name of the user's.
bool is_wait_mark(std::string_view name) noexcept;

}  // namespace holdfast::engine
