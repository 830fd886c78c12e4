#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <holdfast/clock.hpp>
#include <holdfast/observer.hpp>
#include <holdfast/result.hpp>
#include <holdfast/store/store.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "engine/lease_timer.hpp"

namespace holdfast::engine {

/// How long it lasts: not always so long as was asked for.
std::chrono::microseconds lease_of(const store::permits_reply& granted) noexcept;

class renewable;
class store_client;

using schedule = std::multimap<boot_time, std::shared_ptr<renewable>>;

/// What the keeper keeps alive, as it sees it.
class renewable {
 public:
  /// What is sent to renew it.
  virtual store::renewal renewal() const = 0;
  /// For how long that asks.
  virtual std::chrono::milliseconds renewed_for() const noexcept = 0;

 protected:
  explicit renewable(const lease_timer& timer) : timer_(timer) {}
  virtual ~renewable() = default;

  /// The timer's verdict has changed. With the keeper's mutex held.
  virtual void publish() noexcept = 0;
  virtual void announce(event_kind kind, const failure* why) noexcept = 0;
  virtual void announce_lost(std::string_view why) noexcept = 0;

  // Guarded by the keeper's mutex.
  lease_timer timer_;
  std::optional<schedule::iterator> scheduled_;

 private:
  friend class keeper;
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

  /// Somebody else than the keeper renews this hold: waits until no renewal is on its way, and
  /// keeps the keeper from beginning one. The answers of two could come in another order than the
  /// store carried them out, and the longer one be believed. Ends with one of those below.
  void begin_renewal(renewable& h);
  void renewed(renewable& h, boot_time sent, std::chrono::nanoseconds lease);
  /// It was not even asked for.
  void not_renewed(renewable& h);
  void failed(renewable& h, const failure& why);
  /// The store says that it is not held any more.
  void gone(renewable& h);
  /// Our own clock says so.
  void ended(renewable& h);
  /// Nobody knows: it is lost, unless it was released meanwhile. False then.
  bool in_doubt(renewable& h);
  /// After begin_renewal(), before a renewal for `lease` is sent: from now on it is relied on for
  /// no longer than that. Returns until when it was, for restore() if nothing was carried out.
  boot_time shorten(renewable& h, boot_time sent, std::chrono::nanoseconds lease);
  void restore(renewable& h, boot_time valid_until);

  /// Releases at the store when it can be reached again, for as long as it may matter: the holder
  /// could not tell it, or did not learn whether it got what it asked for.
  void abandon(std::string name, const store::owner_id& owner, std::chrono::nanoseconds lease);

  /// Something is on its way that nobody waits for: its answer is looked for soon, if nobody else
  /// comes upon it before.
  void expect_answers();

  /// Ends its threads.
  void stop();

 private:
  struct abandoned {
    std::string name;
    store::owner_id owner;
    std::chrono::nanoseconds lease;
    boot_time until;
  };
  using batch = std::vector<std::shared_ptr<renewable>>;
  using news = std::function<void()>;

  void reschedule(renewable& h);
  void watch_time();
  boot_time take_due(batch& suspected, batch& lost);
  void renew_forever();
  void renew_batch(const batch& due);
  news on_renewed(renewable& h, boot_time sent, std::chrono::nanoseconds lease);
  news on_failed(renewable& h, const failure& why);
  news on_lost(renewable& h, std::string_view why);
  news settle(renewable& h, boot_time sent, const result<store::permits_reply>& reply);
  template <class End>
  void end_renewal(End end);
  template <class End>
  void end_renewal(renewable& h, End end);
  /// False if some are to be tried again later.
  bool release_abandoned(std::unique_lock<std::mutex>& lock);
  void settle(std::unique_lock<std::mutex>& lock);

  store_client& session_;
  std::mutex mutex_;
  std::condition_variable time_changed_;
  std::condition_variable work_changed_;
  std::condition_variable renewal_over_;
  schedule schedule_;
  batch to_renew_;
  std::deque<abandoned> abandoned_;
  boot_time retry_abandoned_at_ = forever;
  boot_time settle_at_ = forever;
  std::atomic<bool> expecting_{false};
  boot_time sleeping_until_ = forever;
  bool stopping_ = false;
  std::atomic<bool> started_{false};
  std::thread timer_thread_;
  std::thread renewal_thread_;
};

}  // namespace holdfast::engine
