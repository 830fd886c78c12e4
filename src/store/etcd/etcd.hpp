#pragma once

#include <holdfast/store/contender_store.hpp>
#include <memory>

#include "store/etcd/options.hpp"

/// etcd: a contender is a key with the lease of its session; the order is that of the revisions in
/// which the keys were created.
namespace holdfast::store::etcd {

/// Connects, logs in, and gets the session's lease. Fails with errc::unavailable within
/// connect_timeout if no server answers, with not_permitted if the user may not read the prefix.
result<std::unique_ptr<contender_store>> open_etcd(etcd_options options);

}  // namespace holdfast::store::etcd
