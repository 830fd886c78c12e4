#pragma once

#include <holdfast/store/slot_store.hpp>
#include <memory>

#include "store/memcached/options.hpp"

namespace holdfast::store::memcached {

/// Slots on memcached servers from 1.6 on, by its meta commands. Connects to each, so that one that
/// is none is told now. Fails if none is there: the others are connected to when they are needed.
result<std::unique_ptr<slot_store>> open_memcached(memcached_options options);

}  // namespace holdfast::store::memcached
