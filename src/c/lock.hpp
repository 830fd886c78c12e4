#pragma once

#include <memory>

#include "c/lease.hpp"

namespace holdfast::c_abi {

/// The parameters of an acquisition.
struct request {
  bool shared = false;
  std::uint32_t permits = 0;  ///< 0: the lock is not a semaphore, or one permit is meant
};

/// An object that grants leases.
class lock_handle : public named_handle {
 public:
  /// Null if the wait ran out of time or was cancelled.
  virtual std::unique_ptr<held> acquire(const request& r, const waiting& w) = 0;
  virtual void begin_acquire(const request& r, const waiting& w) = 0;
  /// Throws errc::unsupported for a parameter that this kind does not have.
  virtual void require(const request& r) const;
  virtual multi_member member(const request& r);
  /// The session that its leases own in addition to the lock (lease_handle).
  virtual std::shared_ptr<const void> session_of_leases() const { return {}; }
};

}  // namespace holdfast::c_abi
