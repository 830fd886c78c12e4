#pragma once

#include <holdfast/store/contender_store.hpp>
#include <memory>

#include "store/zookeeper/options.hpp"

/// ZooKeeper: a contender is an ephemeral sequential node, and its session is its lease.
namespace holdfast::store::zookeeper {

/// Connects, and makes the base path if it is not there. errc::unavailable within connect_timeout
/// if nobody answers, not_permitted if the ACLs do not let us.
result<std::unique_ptr<contender_store>> open_zookeeper(zookeeper_options options);

}  // namespace holdfast::store::zookeeper
