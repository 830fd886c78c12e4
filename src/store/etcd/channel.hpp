#pragma once

#include <google/protobuf/message_lite.h>

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <memory>

#include "store/etcd/options.hpp"

namespace holdfast::store::etcd {

using message = google::protobuf::MessageLite;

/// What holdfast calls of etcd. The server takes a stream of keep-alives; one of one message is
/// what a plain call looks like.
namespace method {
inline constexpr const char* range = "/etcdserverpb.KV/Range";
inline constexpr const char* txn = "/etcdserverpb.KV/Txn";
inline constexpr const char* grant = "/etcdserverpb.Lease/LeaseGrant";
inline constexpr const char* revoke = "/etcdserverpb.Lease/LeaseRevoke";
inline constexpr const char* keep_alive = "/etcdserverpb.Lease/LeaseKeepAlive";
inline constexpr const char* watch = "/etcdserverpb.Watch/Watch";
inline constexpr const char* authenticate = "/etcdserverpb.Auth/Authenticate";
inline constexpr const char* status = "/etcdserverpb.Maintenance/Status";
}  // namespace method

/// The members of the cluster, one of which is talked to as long as it answers. Thread-safe.
class channel {
 public:
  explicit channel(const etcd_options& o);
  ~channel();
  channel(const channel&) = delete;
  channel& operator=(const channel&) = delete;

  /// gRPC does not work in a child of a process that used it: errc::forked there.
  static status usable_here();

  /// Sends a request that is safe to repeat, to the next member if one does not answer, within
  /// command_timeout. True: it may have been carried out before. errc::lost: there is no such
  /// lease.
  result<bool> call(const char* method, const message& request, message& answer);
  /// The same within another time.
  result<bool> call(const char* method, const message& request, message& answer,
                    std::chrono::nanoseconds within);

  const etcd_options& options() const noexcept;

  /// For streams, which have gRPC's types in their own file.
  struct parts;
  parts& inner() noexcept { return *parts_; }

 private:
  std::unique_ptr<parts> parts_;
};

}  // namespace holdfast::store::etcd
