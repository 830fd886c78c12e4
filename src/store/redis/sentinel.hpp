#pragma once

#include "store/redis/options.hpp"

namespace holdfast::store::redis {

/// The options of a primary that sentinels know, with `locate` set: each connection starts by
/// asking them for its address, so reconnecting follows a failover.
redis_options found_by_sentinels(redis_options options);

}  // namespace holdfast::store::redis
