#pragma once

#include <chrono>
#include <cstdint>
#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <string>

#include "store/sql/options.hpp"

namespace holdfast::store::mariadb {

/// The required TLS: as the option files have it; required; required with a certificate that is
/// trusted and belongs to the host.
enum class tls : std::uint8_t { as_configured, require, verify };

/// The address of the server. Empty fields come from the option files (my.cnf, [client] and
/// [holdfast]) and MYSQL_PWD.
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
  holdfast::clock* clock = &real_clock();  ///< measures the waits of receive()
};

/// `mariadb://user:password@host:port/database?option=value`; without a host, the socket.
result<mariadb_options> read_options(const base::store_url& u);

}  // namespace holdfast::store::mariadb
