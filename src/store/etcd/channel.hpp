#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <memory>

#include "store/etcd/calls.hpp"
#include "store/etcd/options.hpp"

namespace holdfast::store::etcd {

class members;

/// Calls to a member of the cluster that answers. Thread-safe.
class channel {
 public:
  explicit channel(const etcd_options& o);
  ~channel();
  channel(const channel&) = delete;
  channel& operator=(const channel&) = delete;

  /// gRPC does not work in a child of a process that used it: fails with errc::forked there.
  static status usable_here();

  /// Sends a request that is safe to repeat; if a member does not answer, to the next one, within
  /// command_timeout. Returns true if the request may have been carried out before. Fails with
  /// errc::lost if the lease does not exist.
  result<bool> call(const char* method, const message& request, message& answer);
  /// The same with another time limit.
  result<bool> call(const char* method, const message& request, message& answer,
                    std::chrono::nanoseconds within);

  const etcd_options& options() const noexcept;

  /// For streams.
  members& inner() noexcept { return *members_; }

 private:
  std::unique_ptr<members> members_;
};

}  // namespace holdfast::store::etcd
