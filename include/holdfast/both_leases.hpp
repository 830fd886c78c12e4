#pragma once

#include <holdfast/async.hpp>
#include <holdfast/lease.hpp>
#include <system_error>
#include <utility>

namespace holdfast {

/// The two leases of `both`, the old lock's first. Move-only; the destructor releases them.
class [[nodiscard]] both_leases {
 public:
  both_leases() noexcept = default;  ///< holds nothing
  both_leases(lease old, lease next) noexcept : old_(std::move(old)), next_(std::move(next)) {}
  both_leases(both_leases&&) noexcept = default;
  /// First releases what it held before, as release() does.
  both_leases& operator=(both_leases&& other) noexcept {
    if (this != &other) (void)release();
    old_ = std::move(other.old_);
    next_ = std::move(other.next_);
    return *this;
  }

  explicit operator bool() const noexcept { return old_ && next_; }
  const lease& old() const noexcept { return old_; }
  const lease& next() const noexcept { return next_; }

  /// The fence of the new lock, the one that will remain. No round trip.
  std::uint64_t fence() const noexcept { return next_.fence(); }

  /// Throws errc::lost if either is lost. No round trip.
  void check() const {
    old_.check();
    next_.check();
  }

  /// Releases the new one, then the old one, also if the first release failed. errc::lost if either
  /// was lost, else the first error (lease::release). Empty afterwards. One round trip each.
  std::error_code release() noexcept;

 private:
  friend status release_status(both_leases& held) noexcept;  // as that of a lease
  // The destructor releases the new lock first, too: a waiter for both never finds only one free.
  lease old_;
  lease next_;
};

/// release() without a thread (async.hpp): on the session's thread, two round trips. Throws
/// errc::not_owner if empty.
pending<done> async_release(both_leases held);

}  // namespace holdfast
