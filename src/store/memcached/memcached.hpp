#pragma once

#include <holdfast/store/slot_store.hpp>
#include <memory>

#include "store/memcached/options.hpp"

namespace holdfast::store::memcached {

/// Slots on memcached servers from 1.6 on, by its meta commands. Connects to each, so a server
/// that is no memcached is reported now. Fails if no server answers. A server that is away is
/// connected to when it is needed.
result<std::unique_ptr<slot_store>> open_memcached(memcached_options options);

}  // namespace holdfast::store::memcached
