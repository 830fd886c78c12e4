#pragma once

#include <memory>

#include "store/redis/servers.hpp"

namespace holdfast::store::redis {

/// Not connected yet: see servers::open.
std::unique_ptr<servers> make_servers(const redis_options& options);

}  // namespace holdfast::store::redis
