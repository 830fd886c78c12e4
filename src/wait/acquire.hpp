#pragma once

#include <holdfast/timed.hpp>
#include <list>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "lease/hold.hpp"
#include "session/session_impl.hpp"
#include "wait/wait_steps.hpp"

namespace holdfast::engine {

/// Translates a store's answer into a hint for the wait: the first waiter watches the holders in
/// its way, and polls when the lease of one of them ends.
wait_hint hint_of(const session_impl& session, store::permits_reply& reply);

/// The command that asks the store for permits, and the failure for a name that is in use with
/// another kind or capacity.
store::permits_command acquire_command(const session_impl& session, const lock_config& s,
                                       const acquire_params& how, const store::owner_id& owner,
                                       bool wait) noexcept;
failure mismatch_of(const store::permits_reply& reply, const lock_config& s);

/// The grant in `reply`, with its validity by this machine's clock; the request was sent at `sent`.
grant granted_to(const store::owner_id& owner, const store::permits_reply& reply, boot_time sent);

/// One attempt to get permits.
class acquisition final : public request, public contender {
 public:
  acquisition(session_impl& session, const lock_config& s, const acquire_params& c,
              waker* w = nullptr);

  answer ask(bool last) override;
  bool notified(const store::notification& n) override;
  void notified_before() override;
  boot_time put_off(boot_time now) override;
  std::optional<store::named_command> command(bool last) override;
  answer learn(result<store::permits_reply> reply, boot_time sent) override;

  /// The answer is kept, and the next ask() returns it.
  result<bool> ask_instead_of(const transferable& leaving) noexcept override;

  /// What `in` says of its local queue: the lease of the hold that the process has already; or an
  /// empty one, if it is its turn to ask the store, or if it has to wait in the local queue.
  result<lease> let_in(local_queue::entry in, const time_frame& time, const std::stop_token& stop,
                       waits& waited);
  /// Whether it is its turn to ask the store for the process.
  bool has_turn() const noexcept { return turn_.has_value(); }
  void leave_turn() noexcept { turn_.reset(); }
  /// Waits at the store, in a thread. If that fails, nothing stays at the store.
  status win(dispatcher::registration& slot, const timed_call& call, std::stop_token stop);
  /// Makes a lease of the grant. Its turn is over when the lease is released.
  lease begin_lease(std::shared_ptr<session_impl> session, std::shared_ptr<const lock_config> s,
                    const waits& w);

  const grant& granted() const noexcept { return grant_; }
  const store::owner_id& owner() const noexcept { return grant_.owner; }
  /// Whether a request that another thread made for this acquisition was abandoned unanswered: the
  /// store may carry it out after all later requests.
  bool left_behind() const noexcept { return left_behind_; }

 private:
  store::permits_command acquire_command(bool wait) noexcept;
  void keep_queue_lease(const store::permits_reply& queued, boot_time sent);
  void stand_behind(const store::permits_reply& queued, boot_time sent);
  bool proves(const store::notification& n);
  bool is_granted(std::uint64_t fence, boot_time sent, std::chrono::microseconds lasts);

  session_impl& session_;
  acquire_params params_;
  grant grant_;
  std::optional<local_turn> turn_;
  std::optional<answer> answer_;
  bool left_behind_ = false;
  std::shared_ptr<shared_queue_lease> shared_lease_;
  unsigned losses_ = 0;  ///< the losses of `shared_lease_` that this waiter knows of
  boot_time joined_{};   ///< when the request that created the present queue entry was sent
  boot_time look_by_{};  ///< until then the poll may be left to other waiters of the session
  std::optional<std::uint64_t> gaps_;  ///< the dispatcher's gaps before the last request
  /// Owner ahead in the store's queue, until a notification has proved its release.
  store::owner_id behind_{};
  boot_time asked_at_{};           ///< when the last request that was answered was sent
  std::int64_t store_now_at_ = 0;  ///< the store's time in that answer
};

/// Makes a lease of a grant.
lease begin_lease(std::shared_ptr<session_impl> session, std::shared_ptr<const lock_config> s,
                  const acquire_params& c, const grant& g, const waits& w);

// ---- the begin and the end of an acquisition, for the synchronous and the asynchronous form

/// Whether the session is usable; starts the threads that a lease needs.
status ready(session_impl& session, const lock_config& s, const acquire_params& c);
/// The lease of the hold that the process keeps idle; empty if there is none that is good.
lease idle_lease(const lock_config& s, const waits& w);
failure kept_out(local_queue::entry why, const lock_config& s, bool is_try);
/// Whether a wait that failed with `why` has certainly left nothing at the store.
bool leaves_nothing(const failure& why) noexcept;
/// Whether the store did not answer, or was not asked in time. The keeper then releases whatever
/// may be at the store, so that the caller does not wait for that as well.
bool left_to_keeper(const failure& why) noexcept;
/// Cleans up after a wait that failed: neither a queue entry nor a grant that came too late stays
/// at the store.
void leave_nothing_behind(session_impl& session, const lock_config& s, const store::owner_id& owner,
                          const failure& why);
/// Calls `acquire`. If it throws (for lack of memory), the store may have granted the request, so
/// the keeper releases it.
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
/// Reports the failed wait to the observer, as `busy` if the call was a try.
failure gave_up(session_impl& session, const lock_config& s, const time_frame& time, failure f);

/// Acquires permits: through the local queue if the lock_config has one, then at the store. A
/// failed call leaves nothing behind; a grant that came too late is released.
result<lease> acquire(const std::shared_ptr<session_impl>& session,
                      const std::shared_ptr<const lock_config>& s, const acquire_params& c,
                      const timed_call& call, std::stop_token stop);
inline result<lease> acquire(const std::shared_ptr<session_impl>& session,
                             const std::shared_ptr<const lock_config>& s, const acquire_params& c,
                             wait_time wait, std::stop_token stop) {
  return acquire(session, s, c, timed_call(session->now(), wait), std::move(stop));
}

/// The same without a lease object: the permit is not renewed, and any process that knows the owner
/// id may release it.
result<grant> acquire_permit(session_impl& session, const lock_config& s, wait_time wait,
                             std::stop_token stop);

}  // namespace holdfast::engine
