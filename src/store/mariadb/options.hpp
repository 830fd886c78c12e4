#pragma once

#include <chrono>
#include <cstdint>
#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <string>

#include "store/sql/options.hpp"

namespace holdfast::store::mariadb {

/// What of TLS is asked for: what the option files say; that it is used; that the certificate is
/// also trusted and the host's.
enum class tls : std::uint8_t { as_configured, require, verify };

/// Where the server is. What is empty comes from the option files (my.cnf, [client] and [holdfast])
/// and MYSQL_PWD.
struct mariadb_options : sql::link_options {
  std::string host{};
  unsigned port = 0;
  std::string user{};
  std::string password{};
  std::string database{};
  std::string socket{};
  std::string defaults_file{};
  mariadb::tls tls = tls::as_configured;
  std::string ssl_ca{};
  std::string ssl_cert{};
  std::string ssl_key{};
  std::string url{};
  holdfast::clock* clock = &real_clock();  ///< judges how long receive() waits
};

/// `mariadb://user:password@host:port/database?option=value`; without a host, the socket.
result<mariadb_options> read_options(const base::store_url& u);

}  // namespace holdfast::store::mariadb
