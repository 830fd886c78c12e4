#pragma once

#include <holdfast/store/store.hpp>
#include <memory>

#include "store/redis/options.hpp"

/// Redis: the server takes the decisions, next to the data (permits.lua, countdown.lua). One round
/// trip a command over one connection that all threads share; a second connection receives the
/// notifications.
namespace holdfast::store::redis {

/// Connects and checks the server. Fails with errc::unavailable within connect_timeout if no server
/// answers; with errc::unsupported, read_only, not_permitted as docs/stores/redis.md describes for
/// unsuitable servers.
result<std::unique_ptr<session_store>> open_redis(redis_options options);

}  // namespace holdfast::store::redis
