#pragma once

#include <atomic>
#include <chrono>
#include <holdfast/redlock.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>
#include <vector>

#include "primitive/distinct_nodes.hpp"
#include "quorum/quorum_hold.hpp"
#include "session/sleeper.hpp"

namespace holdfast::primitive {

/// The parts of a redlock. A wait for it keeps them alive, and with them the sessions of all nodes.
struct votes_of_redlock {
  static constexpr std::string_view operation = "redlock";

  std::shared_ptr<engine::quorum> nodes = std::make_shared<engine::quorum>();
  std::chrono::milliseconds lease{};
  std::shared_ptr<engine::quorum_renewer> renewer;
  std::unique_ptr<distinct_nodes> distinct;
  std::atomic<std::uint64_t> attempts{0};
  mutable std::mutex mutex;
  std::vector<vote> last;  ///< of the latest attempt

  [[noreturn]] void fail(failure f) const;
  /// As for a subject.
  void require_usable() const;
  /// Starts everything that a lease needs.
  status make_ready() const;
  /// How long to wait for a node.
  std::chrono::nanoseconds patience(wait_time wait) const;
  /// Reports the failed wait to the observer.
  failure gave_up(const engine::time_frame& asked, failure why) const;
  void note(std::vector<vote> votes);
};

/// The pause before the next vote. A split vote is repeated soon, after a random pause; a client
/// that has a majority is disturbed less and less often.
class pauses_between_votes {
 public:
  explicit pauses_between_votes(std::chrono::nanoseconds patience) : patience_(patience) {}
  /// `took`: how long the vote lasted. A vote that lasted longer than the time for a node was held
  /// up in this process, and does not lengthen the pause beyond that.
  std::chrono::nanoseconds after(const std::vector<vote>& votes, std::chrono::nanoseconds took);

 private:
  const std::chrono::nanoseconds patience_;
  unsigned splits_ = 0;
  unsigned refusals_ = 0;
};

/// acquire() of a redlock, step by step: identifies the nodes, votes, pauses, and votes again. A
/// waiting thread and an asynchronous operation use the same steps. If it is destroyed before it
/// has ended, whatever it may hold is released.
class redlock_wait {
 public:
  using hold_ptr = std::shared_ptr<engine::quorum_hold>;

  /// Without `lease` the lock is renewed. With `news`, wait() is not called; instead, `news` is
  /// called when there is something to step() on.
  redlock_wait(std::shared_ptr<votes_of_redlock> of, std::optional<std::chrono::milliseconds> lease,
               const engine::time_frame& asked, engine::quorum_round::news news = {});
  ~redlock_wait() { abandon(); }
  redlock_wait(const redlock_wait&) = delete;
  redlock_wait& operator=(const redlock_wait&) = delete;

  /// Takes the next step. Returns how the wait ended; nothing if it goes on. The observer has been
  /// notified by then.
  std::optional<result<hold_ptr>> step(bool stopped);
  /// When the next step is due, unless there is news earlier.
  boot_time until() const;
  /// For a thread: waits until the next step is due, or `stop` is requested.
  void wait(const std::stop_token& stop) const;
  void abandon() noexcept;

 private:
  using ended = std::optional<result<hold_ptr>>;
  enum class stage : std::uint8_t { begins, asks_who_they_are, votes, pauses };

  ended vote();
  ended go_on(bool stopped);
  ended count_votes(bool stopped);
  ended after_pause(bool stopped);
  bool goes_on(boot_time now) const;
  ended in_vain();
  ended stopped_in_vain();
  failure unavailable() const;

  const std::shared_ptr<votes_of_redlock> of_;
  const std::optional<std::chrono::milliseconds> lease_;
  const engine::time_frame asked_;
  const engine::quorum_round::news news_;
  const std::shared_ptr<engine::sleeper> sleeper_;  ///< of the thread; null with `news`
  const engine::vote_time time_;
  pauses_between_votes pause_;

  stage stage_ = stage::begins;
  boot_time until_ = forever;
  boot_time give_up_ = forever;  ///< when to give up if still too few nodes answer, or perhaps so
  boot_time vote_began_{};
  hold_ptr hold_;
  std::optional<engine::quorum_hold::awaited> awaited_;
  bool broken_off_ = false;
};

}  // namespace holdfast::primitive
