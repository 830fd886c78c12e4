#pragma once

#include <memory>

#include "c/lease.hpp"

namespace holdfast::c_abi {

/// What an acquisition asks for.
struct request {
  bool shared = false;
  std::uint32_t permits = 0;  ///< 0: it is not about permits
};

/// What gives leases.
class lock_handle : public handle {
 public:
  /// Null if it was not in time, or called off.
  virtual std::unique_ptr<held> acquire(const request& r, const waiting& w) = 0;
  virtual void begin_acquire(const request& r, const waiting& w) = 0;
  /// Throws errc::unsupported for what this kind does not have.
  virtual void require(const request& r) const;
  virtual multi_member member(const request& r);
  /// What its leases have beside what is held (lease_handle).
  virtual std::shared_ptr<const void> session_of_leases() const { return {}; }
};

}  // namespace holdfast::c_abi
