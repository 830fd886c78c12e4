#pragma once

#include <chrono>
#include <cstdint>
#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/sql/options.hpp"

namespace holdfast::store::postgres {

/// Where a server is, in libpq's own words; what is not named comes from libpq's own places (PG…
/// variables, the service file, .pgpass).
struct address {
  std::vector<std::pair<std::string, std::string>> parameters{};
};

struct postgres_options : sql::link_options {
  address server{};
  /// Where to listen for notifications, if not at the server (which is a pooler, say).
  address listen{};
  /// `auto`: where a connection of our own is seen; `never`: waiters look again by themselves.
  bool may_listen = true;
  std::string schema = "public";
  std::string url{};                 ///< for messages: no password in it
  holdfast::clock* clock = nullptr;  ///< judges how long receive() waits; null: the machine's
};

/// `postgres://user:password@host:port,host:port/database`; each part may be left out.
result<address> read_address(const base::store_url& u);
/// The same with the options. Those of libpq (sslmode, passfile, …) are handed to it.
result<postgres_options> read_options(const base::store_url& u);

}  // namespace holdfast::store::postgres
