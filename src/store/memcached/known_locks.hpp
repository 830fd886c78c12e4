#pragma once

#include <holdfast/store/own_holds.hpp>

#include "store/memcached/link.hpp"

namespace holdfast::store::memcached {

/// An item that this session has written. The unique numbers of items restart from one when the
/// server restarts, and may then belong to another lock. So a number is valid only over the
/// connection that returned it, which ends with that life of the server.
struct known_lock {
  std::uint64_t link = 0;
  std::int64_t cas = 0;
  std::uint64_t fence = 0;
  server_life life{};
  std::int64_t since_wall_at = 0;
  std::string note{};
};

using known_locks = own_holds<known_lock>;

}  // namespace holdfast::store::memcached
