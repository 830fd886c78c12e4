#pragma once

#include <atomic>
#include <condition_variable>
#include <holdfast/clock.hpp>
#include <holdfast/observer.hpp>
#include <holdfast/result.hpp>
#include <holdfast/store/store.hpp>
#include <holdfast/store/wake_time.hpp>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "lease/lease_timer.hpp"
#include "session/linked_line.hpp"
#include "session/worker.hpp"

namespace holdfast::engine {

/// How long something lasts, by the store's clock. A record that was edited may contain any number:
/// no lease is longer than max_lease.
std::chrono::microseconds between(std::int64_t now_at, std::int64_t expires_at) noexcept;
/// How long it lasts: not always so long as was asked for.
std::chrono::microseconds lease_of(const store::permits_reply& granted) noexcept;

class renewable;
class store_client;

using schedule = std::multimap<boot_time, std::shared_ptr<renewable>>;

/// What the keeper keeps alive, as it sees it.
class renewable {
 public:
  /// What is sent to renew it.
  virtual store::named_command renewal() const = 0;
  /// Whether it may be told that it waits, and is as it should be: at a barrier, for the others.
  virtual bool may_wait() const noexcept = 0;
  /// For how long that asks.
  virtual std::chrono::milliseconds renewed_for() const noexcept = 0;

 protected:
  explicit renewable(const lease_timer& timer) : timer_(timer) {}
  virtual ~renewable() = default;

  /// The timer's verdict has changed. With the keeper's mutex held.
  virtual void publish() noexcept = 0;
  virtual void announce(event_kind kind, const failure* why,
                        std::chrono::nanoseconds margin) noexcept = 0;
  virtual void announce_lost(std::string_view why) noexcept = 0;
  /// It is lost, and the store may keep it all the same: what is there of it is given back.
  virtual void give_back_lost() noexcept = 0;

  // Guarded by the keeper's mutex.
  lease_timer timer_;
  std::optional<schedule::iterator> scheduled_;

 private:
  friend class keeper;
  std::shared_ptr<renewable> next_due_;
  // Of the keeper's thread that watches the time.
  std::shared_ptr<renewable> next_told_;
  bool to_tell_suspect_ = false;
  std::string_view to_tell_lost_{};  ///< why; empty: nothing is to be told
};

/// The lease keeper: one for a session, not one for a lock. Two threads, started with the first
/// lease: one renews, and may be stuck in the store; the other watches the time, and never is, so
/// that a loss is told whether or not a renewal returns. Thread-safe.
class keeper {
 public:
  explicit keeper(store_client& session);
  ~keeper();

  /// Its threads, before anything is taken that would need them. errc::unavailable if the system
  /// gives none.
  status start() noexcept;
  bool on_own_thread() const noexcept;

  void add(const std::shared_ptr<renewable>& h);
  /// After it nothing more is announced about this hold, but what is on its way right now.
  void remove(renewable& h) noexcept;

  /// A caller renews this hold itself: waits until no renewal is on its way, and keeps the keeper
  /// from beginning one. The answers of two renewals could come in another order than the store
  /// carried them out, and the longer one be believed. Ends with one of those below.
  void begin_renewal(renewable& h);
  /// Ends one as failed, if none of those below has when it goes: nobody could renew it again.
  class begun_renewal;
  void answered(renewable& h, boot_time sent, const result<store::permits_reply>& reply);
  /// It was not even asked for.
  void not_renewed(renewable& h);
  /// The store says that it is not held any more.
  void gone(renewable& h);
  /// Our own clock says so.
  void ended(renewable& h);
  /// Nobody knows: it is lost, unless it was released meanwhile. False then.
  bool in_doubt(renewable& h) noexcept;
  /// After begin_renewal(), before a renewal for `lease` is sent: from now on it is relied on for
  /// no longer than that. Returns until when it was, for restore() if nothing was carried out.
  boot_time shorten(renewable& h, boot_time sent, std::chrono::nanoseconds lease);
  void restore(renewable& h, boot_time valid_until);

  /// Releases at the store when it can be reached again, for as long as it may matter: the holder
  /// could not tell it, or did not learn whether it got what it asked for. Without memory to
  /// remember it by it ends with its lease. If the store does not know it any more, `if_absent` is
  /// sent as well.
  void abandon(std::string_view name, const store::owner_id& owner, std::chrono::nanoseconds lease,
               std::optional<store::permits_command> if_absent = {}) noexcept;
  /// Sends this notification again when the store can be reached, for an hour at most: it may not
  /// have been carried out, and others wait for it.
  void send_again(std::string_view name, const store::permits_command& what) noexcept;

  /// Something is on its way that nobody waits for: its answer is looked for soon, if nobody else
  /// comes upon it before.
  void expect_answers();

  /// Ends its threads.
  void stop();

 private:
  struct abandoned {
    std::string name;
    store::permits_command command;
    std::optional<store::permits_command> if_absent;
    std::chrono::nanoseconds lease;
    boot_time until;
  };
  using abandonments = std::list<abandoned>;
  using due_line = linked_line<renewable, &renewable::next_due_>;
  using told_line = linked_line<renewable, &renewable::next_told_>;
  /// What is to be told of a hold when nobody has the mutex. What it points to stays until then. It
  /// takes no memory: the end of a lease is told whether or not there is any.
  struct news {
    renewable* about = nullptr;
    std::optional<event_kind> what{};
    bool suspect = false;
    const failure* failed = nullptr;
    std::string_view lost{};
    std::chrono::nanoseconds margin{};
    bool outlasted = false;  ///< the store may keep what is lost, because a renewal came back late
  };

  void reschedule(renewable& h) noexcept;
  void watch_time();
  boot_time take_due(told_line& to_tell) noexcept;
  void tell_due(told_line& to_tell) noexcept;
  void tell(const news& n) noexcept;
  void renew_forever();
  void renew_batch(due_line& due);
  void fail_batch(due_line& due) noexcept;
  news on_renewed(renewable& h, boot_time sent, std::chrono::nanoseconds lease) noexcept;
  news on_failed(renewable& h, const failure& why) noexcept;
  news on_lost(renewable& h, std::string_view why) noexcept;
  static std::optional<std::string_view> over_because(const renewable& h, boot_time now) noexcept;
  static void note_outlasted(renewable& h, news& n, std::string_view why) noexcept;
  news settle(renewable& h, boot_time sent, const result<store::permits_reply>& reply) noexcept;
  template <class End>
  void end_renewal(End end);
  template <class End>
  void end_renewal(renewable& h, End end);
  /// False if some are to be tried again later.
  bool release_abandoned(std::unique_lock<std::mutex>& lock) noexcept;
  /// The release is over. Requests that wait behind it are sent as long as they may have a caller.
  static void owes_now(abandoned& one, boot_time now) noexcept;
  /// Of those the rest: what is to be tried again.
  void try_to_release(abandonments& todo);
  void remember(std::string_view name, const store::permits_command& what,
                std::optional<store::permits_command> if_absent,
                std::chrono::nanoseconds lasts) noexcept;
  void settle(std::unique_lock<std::mutex>& lock) noexcept;

  store_client& session_;
  std::mutex mutex_;
  std::condition_variable time_changed_;
  std::condition_variable work_changed_;
  std::condition_variable renewal_over_;
  schedule schedule_;
  due_line to_renew_;
  abandonments abandoned_;
  boot_time retry_abandoned_at_ = forever;
  boot_time settle_at_ = forever;
  std::atomic<bool> expecting_{false};
  store::wake_time wake_time_;  ///< of the thread that watches the time
  bool stopping_ = false;
  worker timer_;
  worker renewer_;
};

class keeper::begun_renewal {
 public:
  begun_renewal(keeper& of, renewable& h) : keeper_(of), hold_(h) { of.begin_renewal(h); }
  ~begun_renewal() {
    if (!ended_) keeper_.answered(hold_, {}, without_memory(true));
  }
  begun_renewal(const begun_renewal&) = delete;
  begun_renewal& operator=(const begun_renewal&) = delete;
  /// By what is called next.
  keeper& ends() noexcept {
    ended_ = true;
    return keeper_;
  }

 private:
  keeper& keeper_;
  renewable& hold_;
  bool ended_ = false;
};

}  // namespace holdfast::engine
