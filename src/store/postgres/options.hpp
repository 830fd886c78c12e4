#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/sql/options.hpp"

namespace holdfast::store::postgres {

/// The address of a server, in libpq's own parameters. A missing parameter comes from libpq's other
/// sources (PG… variables, the service file, .pgpass).
struct address {
  std::vector<std::pair<std::string, std::string>> parameters{};
  /// The index among several hosts; shared by all copies.
  std::shared_ptr<std::atomic<std::size_t>> answered_last =
      std::make_shared<std::atomic<std::size_t>>(0);
};

/// The value of a parameter; libpq takes the last of several. Empty if it is missing.
std::string value_of(std::string_view name, const address& a);

struct postgres_options : sql::link_options {
  address server{};
  /// Where to listen for notifications, if not at `server` (which may be a pooler).
  address listen{};
  /// `auto`: where the connection leads to the server itself; `never`: waiters poll.
  bool may_listen = true;
  std::string schema = "public";
  std::string url{};                       ///< for messages: without the password
  holdfast::clock* clock = &real_clock();  ///< measures the waits of receive()
};

/// Reads `postgres://user:password@host:port,host:port/database`; each part is optional.
result<address> read_address(const base::store_url& u);
/// The same with the options. libpq's own options (sslmode, passfile, …) are passed on to it.
result<postgres_options> read_options(const base::store_url& u);

}  // namespace holdfast::store::postgres
