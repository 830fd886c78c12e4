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

/// The time from `now_at` to `expires_at`, both by the store's clock. A record that was edited may
/// contain any number, so the result is at most max_lease.
std::chrono::microseconds between(std::int64_t now_at, std::int64_t expires_at) noexcept;
/// How long the granted lease lasts: not always as long as requested.
std::chrono::microseconds lease_of(const store::permits_reply& granted) noexcept;

class renewable;
class store_client;

using schedule = std::multimap<boot_time, std::shared_ptr<renewable>>;

/// The keeper's view of a lease that it renews.
class renewable {
 public:
  /// The command that renews it.
  virtual store::named_command renewal() const = 0;
  /// Whether the answer "waiting" is normal for it: a participant of a barrier waits for the
  /// others.
  virtual bool may_wait() const noexcept = 0;
  /// How long a lease the renewal requests.
  virtual std::chrono::milliseconds renewed_for() const noexcept = 0;

 protected:
  explicit renewable(const lease_timer& timer) : timer_(timer) {}
  virtual ~renewable() = default;

  /// Called with the keeper's mutex held when the timer's verdict has changed.
  virtual void publish() noexcept = 0;
  virtual void announce(event_kind kind, const failure* why,
                        std::chrono::nanoseconds margin) noexcept = 0;
  virtual void announce_lost(std::string_view why) noexcept = 0;
  /// Releases a lost lock at the store, which may still keep it. Does nothing if its holder has
  /// released it, unless it is to be released `once_more`.
  virtual void give_back_lost(bool once_more) noexcept = 0;

  // Guarded by the keeper's mutex.
  lease_timer timer_;
  std::optional<schedule::iterator> scheduled_;

 private:
  friend class keeper;
  std::shared_ptr<renewable> next_due_;
  // Only for the thread that watches the time.
  std::shared_ptr<renewable> next_told_;
  bool to_tell_suspect_ = false;
  std::string_view to_tell_lost_{};  ///< the reason; empty if there is nothing to report
};

/// The lease keeper: one for each session, not one for each lock. It has two threads, started with
/// the first lease. One renews, and may get stuck in the store. The other watches the time and
/// never waits for the store, so a loss is reported whether or not a renewal returns. Thread-safe.
class keeper {
 public:
  explicit keeper(store_client& session);
  ~keeper();

  /// Starts its threads; to be called before a lock is acquired that needs them. Fails with
  /// errc::unavailable if the system provides no thread.
  status start() noexcept;
  bool on_own_thread() const noexcept;

  void add(const std::shared_ptr<renewable>& h);
  /// Afterwards nothing more is announced about this hold, except an announcement under way.
  void remove(renewable& h) noexcept;

  /// Begins a renewal by the caller: waits until no renewal of this hold is under way, and prevents
  /// the keeper from beginning one. Otherwise the answers of two renewals could arrive in another
  /// order than the store carried them out, and the longer lease would be believed. Ends with one
  /// of the functions below.
  void begin_renewal(renewable& h);
  /// Begins a renewal; if none of the functions below was called, its destructor ends it as failed:
  /// otherwise the hold could not be renewed any more.
  class begun_renewal;
  void answered(renewable& h, boot_time sent, const result<store::permits_reply>& reply);
  /// No renewal was requested.
  void not_renewed(renewable& h);
  /// The lock is no longer held; `why` is a text of losses.hpp.
  void gone(renewable& h, std::string_view why);
  /// It is unknown whether the lock is held: it counts as lost, unless it was released meanwhile.
  /// Returns false in that case.
  bool in_doubt(renewable& h) noexcept;
  /// To be called after begin_renewal(), before a renewal for `lease` is sent: from now on the
  /// lease is relied on for no longer than that. Returns until when it was relied on before, for
  /// restore() if the renewal was not carried out.
  boot_time shorten(renewable& h, boot_time sent, std::chrono::nanoseconds lease);
  void restore(renewable& h, boot_time valid_until);

  /// Releases at the store when the store can be reached again, for as long as it may matter: the
  /// holder's release failed, or a request's outcome is unknown. Without the memory to remember it,
  /// the record ends with its lease. If the store does not know the owner any more, `if_absent` is
  /// sent as well.
  void abandon(std::string_view name, const store::owner_id& owner, std::chrono::nanoseconds lease,
               std::optional<store::permits_command> if_absent = {}) noexcept;
  /// Sends this notification again when the store can be reached, for an hour at most: it may not
  /// have been carried out, and others wait for it.
  void send_again(std::string_view name, const store::permits_command& what) noexcept;

  /// Called when a reply is expected that no thread waits for: the keeper reads the reply soon,
  /// unless another thread reads it earlier.
  void expect_answers();

  /// Stops its threads, and waits for their end.
  void stop();

 private:
  struct abandoned {
    std::string name;
    store::permits_command command;
    std::optional<store::permits_command> if_absent;
    std::chrono::nanoseconds lasts;
    boot_time until = forever;  ///< set by the first look that finds no call of its owner
  };
  using abandonments = std::list<abandoned>;
  using due_line = linked_line<renewable, &renewable::next_due_>;
  using told_line = linked_line<renewable, &renewable::next_told_>;
  /// Events of a hold, to be reported when the mutex is released. What it points to lives until
  /// then. Takes no memory, so that the end of a lease is always reported.
  struct news {
    renewable* about = nullptr;
    std::optional<event_kind> what{};
    bool suspect = false;
    const failure* failed = nullptr;
    std::string_view lost{};
    std::chrono::nanoseconds margin{};
    bool outlasted = false;   ///< the store may keep the lost lock, because a renewal returned late
    bool given_back = false;  ///< before that renewal
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
  /// Returns false if some are to be retried later.
  bool release_abandoned(std::unique_lock<std::mutex>& lock) noexcept;
  /// Called when the release is done, or is no longer needed: from now on sends the command that is
  /// due after it.
  static void owes_now(abandoned& one) noexcept;
  /// Leaves in `todo` the ones to be retried.
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
  /// The next call on the result ends the renewal.
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
