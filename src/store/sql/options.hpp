#pragma once

#include <chrono>
#include <cstdint>
#include <holdfast/result.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::store::sql {

/// What stands between a scheme and the options of a URL:
/// `//user:password@host:port,host/database`.
struct place {
  struct host {
    std::string name;
    std::uint16_t port;
  };
  std::string user{};
  std::string password{};
  std::vector<host> hosts{};
  std::string database{};
  std::string shown{};  ///< the URL for messages: no password in it
};
result<place> parse_place(std::string_view scheme, std::string_view rest, std::uint16_t usual_port);

/// `500ms`, `2s`, or a number of seconds; a millisecond to a day.
result<std::chrono::milliseconds> parse_timeout(std::string_view option, std::string_view text);
/// How many connections: 1 to 100.
result<std::size_t> parse_connections(std::string_view text);

}  // namespace holdfast::store::sql
