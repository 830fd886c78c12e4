#pragma once

#include <chrono>
#include <holdfast/store/store.hpp>
#include <memory>

#include "store/sql/lock_link.hpp"
#include "store/sql/options.hpp"

namespace holdfast::store::sql {

struct session_lock_options {
  std::string url{};
  capabilities can{};
  std::size_t connections =
      4;  ///< one connection for all free locks, and one connection for each waiter
  /// How long a hold counts after the server was last heard: much shorter than the silence after
  /// which the server ends a connection.
  std::chrono::nanoseconds sure_for{std::chrono::seconds(10)};
  holdfast::clock* clock = &real_clock();
};

/// Session mode over a server's own locks: `mode=session` of PostgreSQL and MariaDB.
///
/// One connection takes free locks, for all threads. The server queues a waiter over a connection
/// of its own, which then holds the lock; a waiter without a connection polls. A hold ends with its
/// connection, and is then `absent`. All functions may be called from any thread; they run one at a
/// time.
std::unique_ptr<session_store> over_session_locks(std::unique_ptr<lock_link> first,
                                                  connect_lock_link connect,
                                                  session_lock_options options);

/// The capabilities of this mode: exclusive locks, and shared locks if the server has them.
capabilities session_capabilities(bool shared, const link_options& o) noexcept;

}  // namespace holdfast::store::sql
