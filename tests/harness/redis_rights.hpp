#pragma once

#include <string>
#include <vector>

#include "harness/redis_server.hpp"

/// The rights that docs/stores/redis.md lists: what the page says is what the tests run with.
namespace harness {

/// "everywhere": of its command. A row of its table: "behind sentinels", "with ack", "in a
/// cluster", "the sentinels". On the page "dialects": "redlock", "redisson", "setnx".
std::vector<std::string> documented_redis_rights(const std::string& row,
                                                 const std::string& on = "redis");

/// A user "app" with the password "pw", and the rights of these rows. What the page says of the
/// prefix `holdfast` is said of `prefix`.
void give_documented_rights(const redis_server& to, const std::vector<std::string>& rows,
                            const std::string& prefix = "holdfast");

/// The same user, with these rights and no others.
void give_just(const redis_server& to, const std::vector<std::string>& rights);

/// The URL with that user in it.
std::string as_documented_user(std::string url);

}  // namespace harness
