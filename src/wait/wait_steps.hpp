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

/// What the store answered to one that has to wait.
struct wait_hint {
  std::chrono::microseconds retry_after{};
  std::vector<std::string> watch{};  ///< those whose death would be news
  /// Nobody else looks then: so not a moment before, when the lease in its way has not ended.
  bool alone = false;
  /// If there is one, the next look is then, and `retry_after` does not count: no store was asked.
  std::optional<boot_time> at{};
};

inline constexpr std::string_view held_by_another = "still held by another holder";

/// Something that is asked again and again until it is settled.
class request {
 public:
  virtual ~request() = default;

  /// What comes of it: settled(), when to ask again, or what went wrong.
  using answer = result<std::optional<wait_hint>>;
  static answer settled() { return std::optional<wait_hint>{}; }
  static answer ask_again(wait_hint how) { return std::optional(std::move(how)); }

  /// What to send, so that many can be asked in one round trip; or nothing if it has to ask by
  /// itself. `last`: there will be no other time, leave nothing behind.
  virtual std::optional<store::named_command> command(bool last);
  /// … and what the reply means.
  virtual answer learn(result<store::permits_reply> reply, boot_time sent);
  /// Both, where it has to ask by itself.
  virtual answer ask(bool last);
  /// A notification came: the next poll may not be left to others. Only an answer settles the
  /// request, or the secret of the one that was before: true then.
  virtual bool notified(const store::notification&) { return false; }
  /// One came that nobody looked at.
  virtual void notified_before() {}
  /// What is told if it is not settled in time; when that was is added.
  virtual std::string_view in_vain() const { return held_by_another; }
  /// Whether it is settled without a question: a wait that was stopped before is told so, too.
  virtual bool known() const noexcept { return false; }
  /// Until when a look may be left to others of the session; `now` if it may not.
  virtual boot_time put_off(boot_time now) { return now; }
  /// If not, nothing of it can be at the store, and nothing is to be taken back.
  bool was_asked() const noexcept { return was_asked_; }

 protected:
  friend class wait_steps;
  bool was_asked_ = false;
};

/// The policy of one wait at the store, step by step: a thread that sleeps between them and the
/// runner, which does not, take the same ones. Asks, waits for a notification or until it is time
/// to poll, asks again; one last try at the deadline. While the store is away it keeps trying, ever
/// more slowly, until the deadline, or session_options::store_timeout if there is none. So also
/// while the store answers, and cannot make sure of what it grants. Ends with timed_out, or what
/// the store said; soon after the deadline also if the store hangs (last_answer_within), and then
/// with outcome_unknown: in vain, or unavailable if nothing was heard of it for a second. A wait
/// that is one try lasts as long as the store's own time-outs.
class wait_steps {
 public:
  wait_steps(store_client& session, request& q, const time_frame& time);

  /// Asks. How the wait ended; nothing if it goes on, until() or the next notification.
  std::optional<status> ask();
  /// The same in two halves, as in request.
  std::optional<store::named_command> command();
  std::optional<status> answered(result<store::permits_reply> reply, boot_time sent);
  /// A notification came. How the wait ended; if nothing: ask again, without waiting for until().
  std::optional<status> notified(const store::notification& n) {
    return request_.notified(n) ? std::optional<status>(done{}) : std::nullopt;
  }
  void notified_before() { request_.notified_before(); }

  boot_time until() const noexcept { return until_; }
  /// How it ends where the store has not answered in time, since the wait began.
  failure left_at_deadline(boot_time began);
  /// Whose death would be news.
  const std::vector<std::string>& watched() const noexcept { return watched_; }

 private:
  bool at_deadline() const noexcept;
  bool left_to_others();
  std::optional<status> judge(request::answer answer, boot_time sent);
  std::optional<status> judge_failure(failure f, boot_time sent);
  boot_time gives_up_at(const failure& f, boot_time sent, boot_time now);

  store_client& session_;
  request& request_;
  const boot_time deadline_;
  const bool is_try_;
  const boot_time called_;  ///< when the user's call began
  const boot_time began_;
  const boot_time limit_;  ///< no answer is waited for any longer
  boot_time until_;
  boot_time give_up_ = forever;  ///< if the store is still away then
  /// Since when it is granted in vain, again and again: to be let wait meanwhile is no good news.
  boot_time in_vain_since_{};
  std::optional<boot_time> last_in_vain_;
  std::chrono::nanoseconds pause_;
  bool last_ = false;
  bool answered_ = false;           ///< the store let it wait
  bool unknown_ = false;            ///< what became of an attempt since the last answer
  std::optional<failure> in_vain_;  ///< if the last answer was that: why
  std::vector<std::string> watched_;
};

/// The wait of a thread. Fails as wait_steps, or with cancelled.
status wait_until_settled(store_client& session, dispatcher::registration& slot, request& q,
                          const timed_call& call, std::stop_token stop);
/// The same of one that hears what its owner is notified of while it waits, and not before.
inline status wait_until_settled(store_client& session, const store::owner_id& owner, request& q,
                                 const timed_call& call, std::stop_token stop = {}) {
  if (auto can = session.usable(); !can) return can;  // the dispatcher's mutex is the parent's
  dispatcher::registration hears(session.dispatcher(), owner);
  return wait_until_settled(session, hears, q, call, std::move(stop));
}

failure asked_to_stop();
/// Not settled in time: `timed_out` at its deadline, or `busy` if it was one try, which has none.
failure waited_in_vain(bool is_try, std::string_view what = held_by_another);
/// Whether it ended so, which is a decision and no error.
inline bool is_in_vain(errc why) noexcept { return why == errc::busy || why == errc::timed_out; }
/// The same of a wait that was asked to stop.
inline bool was_given_up(errc why) noexcept { return is_in_vain(why) || why == errc::cancelled; }
/// Of a wait for so long, which the store has not answered by its deadline.
failure unanswered(std::chrono::nanoseconds waited, bool answered_before);

}  // namespace holdfast::engine
