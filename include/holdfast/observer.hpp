#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace holdfast {

enum class event_kind {
  acquired,        ///< `waited` says how long it took
  released,        ///< the store knows: `held` says how long it was kept
  gave_up,         ///< a wait ended without the lock: `code` says why
  suspect,         ///< renewals fail, or do not return; the lease still runs
  held_again,      ///< a renewal succeeded after all
  lost,            ///< the lease no longer protects anything: `code` and `detail` say why
  renew_failed,    ///< one renewal failed; the keeper tries again
  release_failed,  ///< the store was not told: it is told again, until the lease ends
  misuse,          ///< unlock() without holding it, and the like
  warning,         ///< something about the store that a person should know
  lock_order,      ///< two names are taken in both orders: `detail` says where
  deadlock,        ///< this wait was ended, it would never have: `detail` says who waited for whom
};
std::string_view to_string(event_kind kind) noexcept;

/// What happened. The views live only during the call.
struct event {
  event_kind kind{};
  std::string_view name{};
  std::string_view store{};
  std::uint64_t fence = 0;
  std::chrono::nanoseconds waited{};
  std::chrono::nanoseconds
      waited_in_local_queue{};  ///< the part of it behind threads of this process
  std::chrono::nanoseconds held{};
  std::error_code code{};
  std::string_view detail{};
};

/// The library prints nothing: it reports to an observer. on_event may be called from several
/// threads at once, also from the session's own; it must not call back into the same lock. What it
/// throws is swallowed.
class observer {
 public:
  virtual ~observer() = default;
  virtual void on_event(const event& what) = 0;
};

}  // namespace holdfast
