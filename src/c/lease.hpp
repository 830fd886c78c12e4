#pragma once

#include <condition_variable>
#include <functional>
#include <holdfast/election.hpp>
#include <holdfast/multi_lock.hpp>
#include <holdfast/redlock.hpp>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "c/queue.hpp"

namespace holdfast::c_abi {

/// What all kinds of leases have in common.
class held {
 public:
  virtual ~held() = default;
  virtual std::vector<std::uint64_t> fences() const = 0;
  virtual std::string name() const { return {}; }
  virtual std::string short_id() const { return {}; }
  virtual lease_state state() const = 0;
  virtual std::chrono::nanoseconds remaining() const = 0;
  virtual void check() const = 0;
  virtual std::stop_token lost() const = 0;
  virtual void extend(std::optional<std::chrono::milliseconds> length) = 0;
  virtual status release() = 0;
  virtual pending<done> begin_release() = 0;
};

/// The implementation for one kind of lease.
template <class Lease>
class held_as : public held {
 public:
  explicit held_as(Lease l) : lease_(std::move(l)) {}
  std::vector<std::uint64_t> fences() const override {
    if constexpr (requires { lease_.fences(); }) {
      return lease_.fences();
    } else {
      return {lease_.fence()};
    }
  }
  lease_state state() const override { return lease_.state(); }
  std::chrono::nanoseconds remaining() const override { return lease_.remaining(); }
  void check() const override { lease_.check(); }
  std::stop_token lost() const override { return lease_.lost(); }
  void extend(std::optional<std::chrono::milliseconds> length) override {
    if constexpr (requires { lease_.extend(); }) {
      length ? lease_.extend(*length) : lease_.extend();
    } else {
      refuse(errc::unsupported, "a redlock's lease cannot be extended by hand: it renews itself");
    }
  }
  status release() override { return release_status(lease_); }
  pending<done> begin_release() override { return async_release(std::move(lease_)); }

 protected:
  Lease lease_;
};

class single final : public held_as<lease> {
 public:
  /// `of_a_mutex`: a condition can wait with this lease.
  single(lease l, bool of_a_mutex) : held_as(std::move(l)), of_a_mutex_(of_a_mutex) {}
  std::string name() const override { return lease_.name(); }
  std::string short_id() const override { return lease_.short_id(); }
  /// For functions that change the lease.
  lease& itself() noexcept { return lease_; }
  bool of_a_mutex() const noexcept { return of_a_mutex_; }

 private:
  bool of_a_mutex_;
};

inline std::unique_ptr<held> as_held(lease l, bool of_a_mutex = false) {
  return std::make_unique<single>(std::move(l), of_a_mutex);
}
inline std::unique_ptr<held> as_held(leadership l) { return as_held(std::move(l).as_lease()); }
inline std::unique_ptr<held> as_held(multi_lease l) {
  return std::make_unique<held_as<multi_lease>>(std::move(l));
}
inline std::unique_ptr<held> as_held(quorum_lease l) {
  return std::make_unique<held_as<quorum_lease>>(std::move(l));
}

/// Empty after the release, and while a condition uses the lease. Many calls may use the lease at
/// the same time, and a call that hangs does not hold up the others. The lease of a closed handle
/// is released at once, or at the end of the last call that may ask the store.
class lease_handle final : public handle {
 public:
  /// The handle of a mutex's lease also owns its session until it is closed: a wait for a condition
  /// releases the lock, which may be the only other owner of the session.
  explicit lease_handle(std::unique_ptr<held> what, std::shared_ptr<const void> session = {})
      : session_(std::move(session)), held_(std::move(what)) {}
  void on_close() noexcept override;
  /// For a call that needs the session until its end, even if another thread closes the lease.
  std::shared_ptr<const void> session_kept();

  /// Calls `use` with the lease; throws errc::not_owner if the handle is empty.
  template <class F>
  auto with(F&& use) {
    const call_under_way here(call_under_way::in::a_release);  // if the lease is closed meanwhile
    const use_of_held inside(*this);
    return use(*held_);
  }
  /// The same for what is known without the store: others wait until `use` has returned.
  template <class F>
  auto look(F&& use) {
    const std::lock_guard guard{mutex_};
    require_present();
    return use(*held_);
  }
  /// Empties the handle, and returns the lease. Waits for the calls under way.
  std::unique_ptr<held> empty();
  /// The same for a caller that must not wait: the last call under way passes the lease to `then`,
  /// which must not throw.
  using receiver = std::function<void(std::unique_ptr<held>)>;
  void empty_later(receiver then);
  /// Reverses empty(): the handle has a lease again, and is watched as before. Returns false if the
  /// handle was closed meanwhile: then `what` is destroyed, which releases it.
  [[nodiscard]] bool fill(std::unique_ptr<held> what);
  void watch(std::shared_ptr<queue> to, std::uint64_t tag, void* key);
  /// Reports the loss of a lease that was taken out of the handle and does not come back, unless
  /// the handle was closed meanwhile.
  void lost() noexcept;

 private:
  struct watcher {
    watcher(std::shared_ptr<queue> told, prepared loss)
        : to(std::move(told)), event(std::make_shared<prepared>(std::move(loss))) {}
    const std::shared_ptr<queue> to;
    /// Made in advance, so that the thread that reports the loss needs no memory. Empty afterwards.
    const std::shared_ptr<prepared> event;
    std::optional<std::stop_callback<std::function<void()>>> callback{};
  };
  /// A call under way, which may ask the store. Unlike a visit, it does not hold up the thread that
  /// closes the handle.
  class use_of_held {
   public:
    explicit use_of_held(lease_handle& of) : of_(of) { of_.come(); }
    use_of_held(const use_of_held&) = delete;
    use_of_held& operator=(const use_of_held&) = delete;
    ~use_of_held() { of_.go(); }

   private:
    lease_handle& of_;
  };
  void come();
  void go() noexcept;
  /// Rejects further calls. To be called with the mutex held.
  void close_to_others();
  void require_present() const;
  void begin(watcher& w) const;

  std::mutex mutex_;
  std::condition_variable nobody_;
  std::size_t inside_ = 0;
  bool emptied_ = false;  ///< held_ is only for calls under way
  bool closed_ = false;
  bool gives_up_ = false;  ///< the last call under way releases the lease
  receiver then_{};
  std::shared_ptr<const void> session_;
  std::unique_ptr<held> held_;
  std::list<watcher> watchers_;
};

/// Throws errc::not_owner for a lease that was released.
std::shared_ptr<lease_handle> lease_of(const void* key);
/// Throws errc::not_owner for the leases of a multi_lock or a redlock.
single& as_single(held& of);

}  // namespace holdfast::c_abi
