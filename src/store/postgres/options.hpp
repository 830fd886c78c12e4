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
  std::string shown{};  ///< for messages: no password in it
};

struct postgres_options : sql::link_options {
  address server{};
  /// Where to listen for notices, if not at the server (which is a pooler, say).
  address listen{};
  /// `auto`: where a connection of our own is seen; `never`: waiters look again by themselves.
  bool may_listen = true;
  std::string schema = "public";
  std::string url{};
  holdfast::clock* clock = nullptr;  ///< judges how long receive() waits; null: the machine's
};

/// Reads `//user:password@host:port,host:port/database`; each part may be left out.
result<address> parse_address(std::string_view rest);

/// One option of the URL; those of libpq (sslmode, passfile, …) are handed to it.
status set_option(postgres_options& options, std::string_view name, const std::string& value);

/// The names that set_option() knows.
std::vector<std::string_view> known_options();

}  // namespace holdfast::store::postgres
