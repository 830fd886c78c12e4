#pragma once

#include <atomic>
#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>
#include <holdfast/result.hpp>
#include <holdfast/store/command.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "lease/keeper.hpp"
#include "lease/own_holds.hpp"
#include "local/local_queue.hpp"
#include "session/lock_config.hpp"

namespace holdfast::engine {

class session_impl;
class store_client;

/// The parts of its session that a hold needs.
struct hold_services {
  store_client& client;
  engine::keeper& keeper;
};

inline std::error_code code_of(const status& how) noexcept {
  return how ? std::error_code{} : how.error().code;
}
/// Combines the results of several releases: the first failure, except that a lost hold takes
/// precedence.
inline void note_release(status& all, status one) noexcept {
  if (all || code_of(one) == errc::lost) all = std::move(one);
}

/// Something that this process holds: leases point to it, and the keeper renews it. Threads of the
/// process may have it one after the other (local_queue.hpp), each with its own lease and fence.
class hold final : public std::enable_shared_from_this<hold>,
                   public renewable,
                   public transferable,
                   public owned {
 public:
  /// Keeps `session` until it is released; `its` are parts of `session`.
  hold(std::shared_ptr<session_impl> session, const hold_services& its,
       std::shared_ptr<const lock_config> s, const acquire_params& c, const grant& g,
       const waits& w);

  /// Starts renewal, and returns the lease.
  static lease start(std::shared_ptr<hold> self);
  /// The lease of the next thread of this process. Empty if the hold was lost meanwhile, or was in
  /// doubt, and went back to the store. Then the caller has the turn of that hold in the local
  /// queue, in `turn`, unless the loss has ended that turn already.
  static lease next_turn(std::shared_ptr<transferable> passed, const waits& w,
                         std::optional<local_turn>& turn);
  /// Whether the caller needs the result of the release, even if lock_config::unconfirmed_release
  /// is set.
  enum class wants { answer, nothing };
  /// Ends a thread's turn.
  static status release(std::shared_ptr<hold> self, wants w) noexcept;
  /// Releases the hold at the store. Called by its user; or, if the hold is idle, by the thread
  /// that finds that no waiter wants it.
  enum class was { in_use, idle };
  status end(was what, wants w = wants::nothing) noexcept;
  /// Releases many holds, none of which uses a local queue or is shared: in one round trip for each
  /// session, if the store can. Returns the first failure; but a lost hold takes precedence over
  /// other failures.
  static status end_all(std::span<const std::shared_ptr<hold>> all) noexcept;
  void give_back() noexcept override { (void)end(was::idle); }
  void forget() noexcept override;

  bool fits(const lock_config& wanted) const noexcept override;
  bool stays_in_process(boot_time now) const noexcept override;
  bool lingers(boot_time now) const noexcept override;
  std::chrono::nanoseconds linger() const noexcept override { return config_->linger; }
  store::named_command renewal() const override;
  bool may_wait() const noexcept override { return config_->kind == store::kind::barrier; }
  std::chrono::milliseconds renewed_for() const noexcept override {
    return lease_.load(std::memory_order_relaxed);
  }

  std::uint64_t fence() const noexcept { return fence_.load(std::memory_order_relaxed); }
  const std::string& name() const noexcept { return config_->name; }
  const std::shared_ptr<const lock_config>& what() const noexcept { return config_; }
  const store::owner_id& owner() const noexcept override;
  const store::owner_id& secret() const noexcept override { return secret_; }
  lease_state state() const noexcept { return state(session_now()); }
  /// Does not use the session, which may be gone.
  bool has_ended() const noexcept override {
    return given_back_.load(std::memory_order_acquire) ||
           state_.load(std::memory_order_acquire) == lease_state::lost;
  }
  std::chrono::nanoseconds remaining() const noexcept;
  std::stop_token lost_token();
  void check() const;

  /// Extends the lease of the turn `of_turn`. Returns not_owner if that turn is over; the next
  /// turn's lease is not changed. A `lease` of zero means as long as before.
  status extend(std::chrono::milliseconds lease, unsigned of_turn);
  unsigned turn() const noexcept override;
  /// Extends the present turn's lease; throws the failure with its location.
  void extend_or_throw(std::chrono::milliseconds lease);
  [[noreturn]] void fail(failure f, std::string_view operation) const;
  /// Changes the weight (resizing.hpp): returns the command to send, if the lock is held, and takes
  /// the reply. Returns false if there is no room.
  result<store::permits_command> to_resize(std::uint32_t weight) const;
  result<bool> resized(std::uint32_t weight, const store::permits_reply& reply);
  /// If the hold has more than `weight`, it counts as lost from now on.
  bool give_up_stronger_than(std::uint32_t weight) noexcept;

  static hold* behind(const lease& l) noexcept { return l.hold_.get(); }
  static const std::shared_ptr<hold>& shared_behind(const lease& l) noexcept { return l.hold_; }
  /// The lease is empty afterwards.
  static std::shared_ptr<hold> taken_from(lease& l) noexcept { return std::move(l.hold_); }

  /// The readers that share the hold. Each has a lease; the release of the last one releases the
  /// hold.
  unsigned users() const noexcept { return users_.load(std::memory_order_relaxed) & ~loss_told; }
  /// Returns false if the last user has left, or the loss was reported.
  bool add_user() noexcept;
  /// The lease of a user that was added.
  static lease joined(std::shared_ptr<hold> self, boot_time began);
  /// For a user that was added but does not want the lease any more: reported as if it had joined
  /// and left at once, because the event of a loss may have counted it.
  static void leave_unseen(std::shared_ptr<hold> self) noexcept;
  bool traced() const noexcept { return config_->traced; }
  bool ends_by_itself() const noexcept {
    return !config_->renew || config_->max_hold != std::chrono::milliseconds::max();
  }
  /// Null after the release. To be called by the present holder only.
  std::shared_ptr<session_impl> session() const noexcept { return session_; }
  bool belongs_to(const store_client& session, const lock_config& s) const noexcept {
    return &client_ == &session && config_->kind == s.kind && config_->name == s.name;
  }

 private:
  hold(std::shared_ptr<session_impl> session, const hold_services& its,
       std::shared_ptr<const lock_config> s, const acquire_params& c, const grant& g,
       const waits& w, boot_time now);
  static status end_each(std::span<const std::shared_ptr<hold>> all) noexcept;
  static status end_together(std::span<const std::shared_ptr<hold>> all);
  boot_time session_now() const noexcept;
  lease_state state(boot_time now) const noexcept;
  bool may_be_kept(boot_time now) const noexcept;
  /// The hold's state when its release began.
  struct ending {
    was what;
    bool was_lost;
    boot_time at;
  };
  bool in_turn(unsigned turn) const noexcept { return turn_ == turn && !given_back_; }
  /// Also true if a callback for the loss has released the lease since: a lost hold has no next
  /// turn.
  bool lost_in(unsigned turn) const noexcept {
    return turn_ - turn <= 1 && state_ == lease_state::lost;
  }
  status extend_now(std::chrono::milliseconds lease, unsigned of_turn);
  class left_behind;
  static status leave_group(std::shared_ptr<hold> self, wants w);
  std::optional<status> tell_store(const ending& e, wants w);
  void tell_later(const ending& e);
  status ended(const ending& e, status told) noexcept;
  failure not_released(failure why) const noexcept;
  std::stop_source loss();
  std::optional<std::stop_source> loss_if_asked() noexcept;
  void forget_loss();
  void publish() noexcept override;
  void announce_lost(std::string_view why) noexcept override;
  void give_back_lost(bool once_more) noexcept override;
  void announce(event_kind kind, const failure* why = nullptr,
                std::chrono::nanoseconds margin = {}) noexcept override {
    announce(kind, why, margin, 1);
  }
  void announce(event_kind kind, const failure* why, std::chrono::nanoseconds margin,
                unsigned leases) noexcept;
  bool is_first_to_tell(unsigned leases) noexcept;
  void tell_lost(std::string_view why, unsigned leases) noexcept;
  /// Makes the keeper release the hold, for as long as the store may keep it.
  void abandon() noexcept;
  /// An event of the present turn.
  event about(event_kind kind) const noexcept;
  /// The same without how long the lock was held.
  event described(event_kind kind) const noexcept;
  store::permits_command command(store::permits_verb verb) const noexcept;
  /// `lease`, limited to what max_hold leaves.
  std::chrono::milliseconds within_max_hold(std::chrono::milliseconds lease) const noexcept;
  bool leaves_local_queue() noexcept { return in_local_queue_.exchange(false); }

  std::shared_ptr<session_impl> session_;  // until released: a lease keeps its session alive
  store_client& client_;
  engine::keeper& keeper_;
  const std::shared_ptr<const lock_config> config_;
  std::atomic<std::chrono::milliseconds> lease_;
  /// How long the store may keep it, after the answer to an extension was lost.
  std::atomic<std::chrono::milliseconds> may_last_;
  std::atomic<std::uint32_t> weight_;
  store::owner_id owner_;
  store::owner_id secret_;
  std::atomic<std::uint64_t> fence_;
  const boot_time stays_until_;
  const boot_time ends_at_;  ///< by max_hold, regardless of renewals
  std::atomic<bool> in_local_queue_;
  static constexpr unsigned loss_told = 1U << 31;
  /// The number of users, plus the bit loss_told if the loss was reported to them.
  std::atomic<unsigned> users_{1};
  std::atomic<unsigned> turn_{0};  ///< odd while no thread has a turn
  /// Extensions under way; the hold stays with its user until they are answered.
  std::atomic<unsigned> extending_{0};

  // A copy of the timer's verdict, read without a lock.
  std::atomic<lease_state> state_{lease_state::held};
  std::atomic<boot_time> valid_until_;
  std::atomic<bool> given_back_{false};  ///< session_ is being released

  /// Zero until the loss is reported, then one more than the number of leases reported.
  std::atomic<unsigned> told_lost_{0};
  std::atomic<boot_time> ended_{forever};  ///< when it was released

  // The present turn; written by its holder, read for events.
  std::atomic<boot_time> began_;
  std::atomic<boot_time> past_local_queue_;
  std::atomic<boot_time> since_;
  std::atomic<bool> loss_asked_{false};  ///< a caller has a token of lost_
  std::mutex loss_mutex_;
  std::optional<std::stop_source> lost_;
};

}  // namespace holdfast::engine
