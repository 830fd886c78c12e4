#pragma once

#include <holdfast/store/store.hpp>
#include <memory>

#include "store/redis/options.hpp"

/// Redis: the decision is shipped to the data (permits.lua, countdown.lua), one round trip a
/// command over one connection that all threads share; a second one brings the notifications.
namespace holdfast::store::redis {

/// Connects and looks at the server. errc::unavailable within connect_timeout if nobody answers;
/// errc::unsupported, read_only, not_permitted and what docs/stores/redis.md says of other servers.
result<std::unique_ptr<session_store>> open_redis(redis_options options);

}  // namespace holdfast::store::redis
