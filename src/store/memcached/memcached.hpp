#pragma once

#include <holdfast/store/slot_store.hpp>
#include <memory>

#include "store/memcached/options.hpp"

namespace holdfast::store::memcached {

/// Slots on memcached servers from 1.6 on, by the meta commands. Connects to each server, so that a
/// server that is not memcached is reported now. Fails if no server answers. Connects to an
/// unreachable server later, when it is needed.
result<std::unique_ptr<slot_store>> open_memcached(memcached_options options);

}  // namespace holdfast::store::memcached
