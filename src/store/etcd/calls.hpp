#pragma once

#include <google/protobuf/message_lite.h>

namespace holdfast::store::etcd {

using message = google::protobuf::MessageLite;

/// The methods of etcd that holdfast calls. The server expects a stream of keep-alives; a stream of
/// one message looks like a plain call.
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

}  // namespace holdfast::store::etcd
