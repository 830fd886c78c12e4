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

/// What follows from an answer: the first waiter watches those in its way, and polls when the
/// lease of one of them ends.
wait_hint hint_of(const session_impl& session, store::permits_reply& reply);

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

  answer ask(bool last) override;
  bool notified(const store::notification& n) override;
  void notified_before() override;
  boot_time put_off(boot_time now) override;
  std::optional<store::named_command> command(bool last) override;
  answer learn(result<store::permits_reply> reply, boot_time sent) override;

  /// The answer is what the next ask() returns.
  result<bool> ask_instead_of(const transferable& leaving) noexcept override;

  const grant& granted() const noexcept { return grant_; }
  const store::owner_id& owner() const noexcept { return grant_.owner; }
  /// A request that another thread made for it may be carried out after all its own.
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
  std::optional<answer> answer_;
  bool left_behind_ = false;
  std::shared_ptr<shared_queue_lease> shared_lease_;
  unsigned losses_ = 0;                ///< … known of it
  boot_time joined_{};                 ///< when it asked for the queue entry that it has
  boot_time look_by_{};                ///< even if others poll
  std::optional<std::uint64_t> gaps_;  ///< before it last asked
  store::owner_id behind_{};  ///< the one before it at the store, until a notification has said it
  boot_time asked_at_{};      ///< when it last asked, if that was answered …
  std::int64_t store_now_at_ = 0;  ///< … and the store's time of the answer
};

/// What was granted, as a lease.
lease begin_lease(std::shared_ptr<session_impl> session, std::shared_ptr<const lock_config> s,
                  const acquire_params& c, const grant& g, const waits& w);

// ---- what both forms of an acquisition do at its end

/// Whether the session can be used, with everything started that a lease needs.
status ready(session_impl& session, const lock_config& s, const acquire_params& c);
failure kept_out(local_queue::entry why, const lock_config& s, bool is_try);
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

/// The same without a lease object: nobody renews it, and any process that knows the owner id may
/// release it.
result<grant> acquire_permit(session_impl& session, const lock_config& s, wait_time wait,
                             std::stop_token stop);

}  // namespace holdfast::engine
