#pragma once

#include "store/redis/options.hpp"

namespace holdfast::store::redis {

/// The options of a primary that sentinels know, with `locate` set: each connection begins with
/// their word on where it is, so a failover is followed by connecting again.
redis_options found_by_sentinels(redis_options options);

}  // namespace holdfast::store::redis
