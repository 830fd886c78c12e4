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

/// Where a server is, in libpq's own words; what is not named comes from libpq's own places (PG…
/// variables, the service file, .pgpass).
struct address {
  std::vector<std::pair<std::string, std::string>> parameters{};
  /// Which of several hosts; shared by all copies.
  std::shared_ptr<std::atomic<std::size_t>> answered_last =
      std::make_shared<std::atomic<std::size_t>>(0);
};

/// Of several values libpq takes the last. Empty: it is not named.
std::string value_of(std::string_view name, const address& a);

struct postgres_options : sql::link_options {
  address server{};
  /// Where to listen for notifications, if not at the server (which is a pooler, say).
  address listen{};
  /// `auto`: where a connection of our own is seen; `never`: waiters look again by themselves.
  bool may_listen = true;
  std::string schema = "public";
  std::string url{};                       ///< for messages: no password in it
  holdfast::clock* clock = &real_clock();  ///< judges how long receive() waits
};

/// `postgres://user:password@host:port,host:port/database`; each part may be left out.
result<address> read_address(const base::store_url& u);
/// The same with the options. Those of libpq (sslmode, passfile, …) are handed to it.
result<postgres_options> read_options(const base::store_url& u);

}  // namespace holdfast::store::postgres
