#pragma once

#include <holdfast/cpp20.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast {

enum class event_kind {
  acquired,        ///< `waited` says how long it took
  released,        ///< the store confirmed the release: `held` is how long it was held
  gave_up,         ///< a wait ended without the lock: `code` says why
  busy,            ///< a call that does not wait found the lock held
  suspect,         ///< a renewal failed or hangs; the lease has not ended yet
  renewed,         ///< a renewal succeeded: `margin` says how much of the lease was left; zero for
                   ///< the first after another session handed the lock over for a moment
  held_again,      ///< a renewal succeeded after the lease was suspect
  lost,            ///< the lease no longer protects anything: `code` and `detail` say why
  renew_failed,    ///< one renewal failed; the session tries again
  release_failed,  ///< a release failed: it is repeated until the lease ends
  misuse,          ///< unlock() without holding it, and the like
  warning,         ///< a problem of the store that an operator should know
  lock_order,      ///< two names are taken in both orders: `detail` says where
  deadlock,        ///< a wait in a ring was ended: `detail` lists the waits of the ring
  paused,          ///< the thread that watches leases ran late: `waited` says by how much
  notification_gap,  ///< notifications may have been lost; the waiters poll
};
std::string_view to_string(event_kind kind) noexcept;

/// What happened. The views live only during the call.
struct event {
  event_kind kind{};
  std::string_view name{};
  std::string_view store{};
  std::string_view lock_kind{};  ///< as name_info::kind: mutex, shared_mutex, semaphore …
  std::uint64_t fence = 0;
  std::chrono::nanoseconds waited{};
  std::chrono::nanoseconds
      waited_in_local_queue{};  ///< the part of it behind threads of this process
  std::chrono::nanoseconds held{};
  std::chrono::nanoseconds margin{};
  unsigned leases = 1;  ///< lost, release_failed: of how many leases of this process. Zero for an
                        ///< idle lock; if that was being released, a second event says 1
  std::error_code code{};
  std::string_view detail{};
};

/// The library prints nothing: it reports to an observer. on_event may be called from several
/// threads at once, also from the session's own threads. It must not use the lock that the event is
/// about. Exceptions that it throws are ignored.
class observer {
 public:
  virtual ~observer() = default;
  virtual void on_event(const event& what) = 0;
};

/// Combines several observers: each gets every event, even if another one throws. Null pointers are
/// left out.
class observers final : public observer {
 public:
  explicit observers(std::vector<std::shared_ptr<observer>> all) : all_(std::move(all)) {}
  void on_event(const event& what) override {
    for (const auto& one : all_) tell(one.get(), what);
  }

 private:
  static void tell(observer* one, const event& what) noexcept try {
    if (one != nullptr) one->on_event(what);
  } catch (...) {
    return;  // as the session does
  }
  const std::vector<std::shared_ptr<observer>> all_;
};

}  // namespace holdfast
