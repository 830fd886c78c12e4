#pragma once

#include <holdfast/store/own_holds.hpp>

#include "store/memcached/link.hpp"

namespace holdfast::store::memcached {

/// What this session knows of an item that it has written. The unique number of an item counts from
/// one again when the server is started anew, and may then be that of another lock: it is
/// good only over the connection that it came by, which ends with that life of the server.
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
