#pragma once

#include <string>
#include <vector>

#include "harness/redis_server.hpp"

/// The rights that docs/stores/redis.md lists: the tests run with exactly the rights of the page.
namespace harness {

/// `row`: "everywhere" for the page's command; or a row of its table: "behind sentinels", "with
/// ack", "in a cluster", "the sentinels". On the page "dialects": "redlock", "redisson", "setnx".
std::vector<std::string> documented_redis_rights(const std::string& row,
                                                 const std::string& on = "redis");

/// Creates a user "app" with the password "pw" and the rights of these rows. The page's prefix
/// `holdfast` is replaced with `prefix`.
void give_documented_rights(const redis_server& to, const std::vector<std::string>& rows,
                            const std::string& prefix = "holdfast");

/// The same user, with these rights and no others.
void give_just(const redis_server& to, const std::vector<std::string>& rights);

/// The URL with that user in it.
std::string as_documented_user(std::string url);

}  // namespace harness
