#pragma once

#include <holdfast/store/contender_store.hpp>
#include <memory>

#include "store/etcd/options.hpp"

/// etcd: a contender is a key that hangs on the lease of its session; the order is that of the
/// revisions in which the keys were made.
namespace holdfast::store::etcd {

/// Connects, logs in, and makes the session's lease. errc::unavailable within connect_timeout if
/// nobody answers, not_permitted if the user may not read the prefix.
result<std::unique_ptr<contender_store>> open_etcd(etcd_options options);

}  // namespace holdfast::store::etcd
