#pragma once

#include <holdfast/store/contender_store.hpp>
#include <memory>

#include "store/zookeeper/options.hpp"

/// ZooKeeper: a contender is an ephemeral sequential node, and its session is its lease.
namespace holdfast::store::zookeeper {

/// Connects, and creates the base path if it is missing. Fails with errc::unavailable within
/// connect_timeout if no server answers, with not_permitted if the ACLs forbid it.
result<std::unique_ptr<contender_store>> open_zookeeper(zookeeper_options options);

}  // namespace holdfast::store::zookeeper
