#pragma once

#include <chrono>
#include <holdfast/store/store.hpp>
#include <holdfast/timed.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "session/store_client.hpp"

namespace holdfast::engine {

/// The store's answer to a request that has to wait.
struct wait_hint {
  std::chrono::microseconds retry_after{};
  std::vector<std::string> watch{};  ///< the peers whose death is a reason to poll
  /// No other waiter polls at that time. So this one does not poll earlier, while the lease in its
  /// way still runs.
  bool alone = false;
  /// If set, the time of the next poll, and `retry_after` does not count: no store was asked.
  std::optional<boot_time> at{};
};

inline constexpr std::string_view held_by_another = "still held by another holder";

/// A request to the store that is repeated until it is settled.
class request {
 public:
  virtual ~request() = default;

  /// The result of one attempt: settled(), when to ask again, or the failure.
  using answer = result<std::optional<wait_hint>>;
  static answer settled() { return std::optional<wait_hint>{}; }
  static answer ask_again(wait_hint how) { return std::optional(std::move(how)); }

  /// The command to send, so that many requests can share one round trip; nothing if the request
  /// has to ask by itself. `last`: this is the last attempt, which must leave nothing at the store.
  virtual std::optional<store::named_command> command(bool last);
  /// The meaning of the reply to that command.
  virtual answer learn(result<store::permits_reply> reply, boot_time sent);
  /// Both in one, if the request has to ask by itself.
  virtual answer ask(bool last);
  /// A notification arrived: the next poll may not be left to other waiters. Returns true if the
  /// notification settles the request. Only one with the secret of the owner before this one can;
  /// after any other notification the request needs an answer of the store.
  virtual bool notified(const store::notification&) { return false; }
  /// A notification came before the request could take it.
  virtual void notified_before() {}
  /// The text of the failure if the request is not settled in time; the caller adds when that was.
  virtual std::string in_vain() const { return std::string(held_by_another); }
  /// Whether the request is settled without asking the store. Then a wait succeeds even if it was
  /// stopped before it began.
  virtual bool known() const noexcept { return false; }
  /// Until when the poll may be left to other waiters of the session; `now` if it may not.
  virtual boot_time put_off(boot_time now) { return now; }
  /// If false, nothing of the request can be at the store, so there is nothing to release.
  bool was_asked() const noexcept { return was_asked_; }

 protected:
  friend class wait_steps;
  bool was_asked_ = false;
};

/// The policy of one wait at the store, in steps. A thread that sleeps between the steps, and the
/// runner, which does not sleep, take the same steps. The wait asks the store, waits for a
/// notification or until the next poll is due, and asks again; at the deadline it tries a last
/// time.
///
/// While the store is away, the wait retries after ever longer pauses until the deadline, or for
/// session_options::store_timeout if there is no deadline. It does the same while the store answers
/// but cannot make sure of what it grants.
///
/// The wait ends with timed_out, or with the failure that the store returned. If the store hangs,
/// the wait ends soon after the deadline (last_answer_within) with outcome_unknown set: timed_out,
/// or unavailable if the wait has lasted a second without any answer. A wait that is one try lasts
/// as long as the store's own time-outs.
class wait_steps {
 public:
  wait_steps(store_client& session, request& q, const time_frame& time);

  /// Asks the store. Returns how the wait ended; nothing if it goes on, until until() or the next
  /// notification.
  std::optional<status> ask();
  /// The two halves of ask(), as in request.
  std::optional<store::named_command> command();
  std::optional<status> answered(result<store::permits_reply> reply, boot_time sent);
  /// Takes a notification. Returns how the wait ended; if nothing, the caller asks again without
  /// waiting for until().
  std::optional<status> notified(const store::notification& n) {
    return request_.notified(n) ? std::optional<status>(done{}) : std::nullopt;
  }
  void notified_before() { request_.notified_before(); }

  boot_time until() const noexcept { return until_; }
  /// The failure if the store has not answered in time; the wait began at `began`.
  failure left_at_deadline(boot_time began);
  /// The peers whose death is a reason to poll.
  const std::vector<std::string>& watched() const noexcept { return watched_; }

 private:
  bool at_deadline() const noexcept;
  bool left_to_others();
  std::optional<status> judge(request::answer answer, boot_time sent);
  std::optional<status> judge_failure(failure f, boot_time sent);
  boot_time gives_up_at(const failure& f, boot_time sent, boot_time now);

  store_client& session_;
  request& request_;
  const time_frame time_;  ///< of the user's call
  const boot_time began_;
  const boot_time limit_;  ///< the wait for an answer ends then
  boot_time until_;
  boot_time give_up_ = forever;  ///< when the wait gives up if the store is still away
  /// Start of the present series of grants that could not be made sure of. An answer "wait" in
  /// between does not end the series.
  boot_time in_vain_since_{};
  std::optional<boot_time> last_in_vain_;
  std::chrono::nanoseconds pause_;
  bool last_ = false;
  bool answered_ = false;  ///< the store has answered "wait"
  bool unknown_ = false;   ///< the outcome of an attempt since the last answer is unknown
  /// The failure, if the last answer was a grant that could not be made sure of.
  std::optional<failure> in_vain_;
  std::vector<std::string> watched_;
};

/// The wait of a thread. Fails as wait_steps does, or with cancelled.
status wait_until_settled(store_client& session, dispatcher::registration& slot, request& q,
                          const timed_call& call, std::stop_token stop);
/// The same, for a caller that receives the owner's notifications only during this wait.
inline status wait_until_settled(store_client& session, const store::owner_id& owner, request& q,
                                 const timed_call& call, std::stop_token stop = {}) {
  // In a forked child the dispatcher's mutex is the parent's.
  if (auto can = session.usable(); !can) return can;
  dispatcher::registration hears(session.dispatcher(), owner);
  return wait_until_settled(session, hears, q, call, std::move(stop));
}

failure asked_to_stop();
/// The failure of a wait that was not settled in time: `timed_out` at its deadline, or `busy` for a
/// try, which has no deadline.
failure waited_in_vain(bool is_try, std::string_view what = held_by_another);
/// Whether a wait ended that way, which is a decision and no error.
inline bool is_in_vain(errc why) noexcept { return why == errc::busy || why == errc::timed_out; }
/// Whether a wait ended that way, or was stopped on request.
inline bool was_given_up(errc why) noexcept { return is_in_vain(why) || why == errc::cancelled; }

}  // namespace holdfast::engine
