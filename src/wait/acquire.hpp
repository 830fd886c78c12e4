#pragma once

#include <holdfast/timed.hpp>
#include <list>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "lease/hold.hpp"
#include "session/session_impl.hpp"

namespace holdfast::engine {

/// What the store answered to one who has to wait.
struct wait_hint {
  std::chrono::microseconds retry_after{};
  std::vector<std::string> watch{};  ///< those whose death would be news
  /// Nobody else looks then: so not a moment before, when the lease in its way has not ended.
  bool alone = false;
};

/// … and what follows from that: the first in line watches those in its way, and looks when the
/// lease of one of them ends.
wait_hint hint_of(const session_impl& session, store::permits_reply& reply);

/// Something that is asked again and again until it is settled.
class request {
 public:
  virtual ~request() = default;
  /// What to send, so that many can be asked in one round trip; or nothing if it has to ask by
  /// itself. `last`: there will be no other time, leave nothing behind.
  virtual std::optional<store::named_command> command(bool last);
  /// What came of it. Settled if it returns nothing.
  virtual result<std::optional<wait_hint>> learn(result<store::permits_reply> reply,
                                                 boot_time sent);
  /// Both, where it has to ask by itself.
  virtual result<std::optional<wait_hint>> ask(bool last);
  /// A notification came: the next look may not be left to others. Whoever sent it, only an answer
  /// settles the request, or the secret of the one that was before: true then.
  virtual bool notified(const store::notification&) { return false; }
  /// One came that nobody looked at.
  virtual void notified_before() {}
  /// Until when a look may be left to others of the session; `now` if it may not.
  virtual boot_time put_off(boot_time now) { return now; }
};

/// The policy of one wait at the store, step by step: a thread that sleeps between them and the
/// runner, which does not, take the same ones. Asks, waits for a notification or until it is time
/// to look again, asks again; one last try at the deadline. While the store is away it keeps
/// trying, ever more slowly, until the deadline, or session_options::store_timeout if there is
/// none. So also while the store answers, and cannot make sure of what it grants. Ends with
/// timed_out, or what the store said; soon after the deadline also if the store hangs
/// (last_answer_within), and then with outcome_unknown: in vain, or unavailable if nothing was
/// heard of it for a second. A wait that is one try lasts as long as the store's own time-outs.
class wait_steps {
 public:
  wait_steps(session_impl& session, request& q, const time_frame& time);

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
  std::optional<status> judge(result<std::optional<wait_hint>> answer, boot_time sent);
  std::optional<status> judge_failure(failure f, boot_time sent);
  boot_time gives_up_at(const failure& f, boot_time sent, boot_time now);

  session_impl& session_;
  request& request_;
  const boot_time deadline_;
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
  std::optional<failure> in_vain_;  ///< if the last answer was that: why
  std::vector<std::string> watched_;
};

/// The wait of a thread. Fails as wait_steps, or with cancelled.
status wait_until_settled(session_impl& session, dispatcher::registration& slot, request& q,
                          const timed_call& call, std::stop_token stop);
/// The same of one that hears what its owner is notified of while it waits, and not before.
inline status wait_until_settled(session_impl& session, const store::owner_id& owner, request& q,
                                 const timed_call& call, std::stop_token stop = {}) {
  dispatcher::registration hears(session.dispatcher(), owner);
  return wait_until_settled(session, hears, q, call, std::move(stop));
}

/// What asks the store for it, and what is wrong if it is in use as something else.
store::permits_command acquire_command(const session_impl& session, const lock_config& s,
                                       const acquire_params& how, const store::owner_id& owner,
                                       bool wait) noexcept;
failure mismatch_of(const store::permits_reply& reply, const lock_config& s);

/// What a grant, asked for at `sent`, is good for here.
grant granted_to(const store::owner_id& owner, const store::permits_reply& reply, boot_time sent);

/// One attempt to get permits.
class acquisition final : public request, public contender {
 public:
  acquisition(session_impl& session, const lock_config& s, const acquire_params& c,
              waker* w = nullptr);

  result<std::optional<wait_hint>> ask(bool last) override;
  bool notified(const store::notification& n) override;
  void notified_before() override;
  boot_time put_off(boot_time now) override;
  std::optional<store::named_command> command(bool last) override;
  result<std::optional<wait_hint>> learn(result<store::permits_reply> reply,
                                         boot_time sent) override;

  /// The answer is what the next ask() returns.
  result<bool> ask_instead_of(const transferable& leaving) noexcept override;

  const grant& granted() const noexcept { return grant_; }
  const store::owner_id& owner() const noexcept { return grant_.owner; }

 private:
  store::permits_command acquire_command(bool wait) noexcept;
  void keep_queue_lease(const store::permits_reply& queued, boot_time sent);
  void stand_behind(const store::permits_reply& queued, boot_time sent);
  bool proves(const store::notification& n);
  bool is_granted(std::uint64_t fence, boot_time sent, std::chrono::microseconds lasts);

  session_impl& session_;
  acquire_params params_;
  grant grant_;
  std::optional<result<std::optional<wait_hint>>> answer_;
  std::shared_ptr<shared_queue_lease> shared_lease_;
  unsigned losses_ = 0;                ///< … known of it
  boot_time look_by_{};                ///< whoever else looks
  std::optional<std::uint64_t> gaps_;  ///< before it last asked
  store::owner_id behind_{};  ///< who was before it at the store, until a notification has said it
  boot_time asked_at_{};      ///< when it last asked, if that was answered …
  std::int64_t store_now_at_ = 0;  ///< … and the store's time of the answer
};

// ---- what both forms of an acquisition do at its end
// ---------------------------------------------

/// Whether the session can be used, with everything started that a lease needs.
status ready(session_impl& session, const lock_config& s, const acquire_params& c);
failure waited_in_vain(errc why);
/// Of a wait that began then, and that the store has not answered by its deadline.
failure unanswered(session_impl& session, boot_time began, bool answered_before);
failure kept_out(local_queue::entry why, const lock_config& s);
/// Whether a wait that ended so has left nothing at the store.
bool leaves_nothing(const failure& why) noexcept;
/// Whether the store did not answer, or was not asked in time: then the keeper gives back what may
/// be there, and the caller does not wait for that as well.
bool left_to_keeper(const failure& why) noexcept;
/// After a wait that failed: nothing stays at the store, neither a queue entry nor what was won too
/// late.
void leave_nothing_behind(session_impl& session, const lock_config& s, const store::owner_id& owner,
                          const failure& why);
/// Does it, and if it throws, for lack of memory: the store may have granted it, and the keeper
/// gives it back.
template <class Acquire>
auto or_abandon(session_impl& session, const lock_config& s, const store::owner_id& owner,
                Acquire acquire) {
  try {
    return acquire();
  } catch (...) {
    session.keeper().abandon(s.name, owner, s.lease);
    throw;
  }
}
/// Tells the observer: of a call that does not wait, that the lock was busy.
failure gave_up(session_impl& session, const lock_config& s, const time_frame& time, failure f);

/// Gets permits: through the local queue if the lock_config has one, then at the store. Whatever it
/// fails with, nothing stays behind: what was won too late is released.
result<lease> acquire(const std::shared_ptr<session_impl>& session,
                      const std::shared_ptr<const lock_config>& s, const acquire_params& c,
                      const timed_call& call, std::stop_token stop);
inline result<lease> acquire(const std::shared_ptr<session_impl>& session,
                             const std::shared_ptr<const lock_config>& s, const acquire_params& c,
                             wait_time wait, std::stop_token stop) {
  return acquire(session, s, c, timed_call(session->now(), wait), std::move(stop));
}

/// The same without a lease object: nobody renews it, whoever knows the owner id may release it.
result<grant> acquire_permit(session_impl& session, const lock_config& s, wait_time wait,
                             std::stop_token stop);

}  // namespace holdfast::engine
