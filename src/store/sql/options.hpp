#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <holdfast/result.hpp>
#include <optional>
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

/// What every SQL store can be told of its connections.
struct link_options {
  std::size_t connections = 4;                       ///< 1 to 100
  std::chrono::milliseconds connect_timeout{5'000};  ///< a millisecond to a day, as the next
  std::chrono::milliseconds command_timeout{5'000};
  /// The server's own locks, which end with a connection, instead of rows with a lease.
  bool session_mode = false;
  /// With them: after so long a silence the server ends a connection; 3 s to a day.
  std::chrono::milliseconds silence{30'000};
};
/// A hold counts for so long after the server was heard: a third of the silence that it allows.
inline std::chrono::milliseconds sure_for(const link_options& o) noexcept { return o.silence / 3; }
inline constexpr std::array<std::string_view, 5> link_option_names{
    "connections", "connect_timeout", "command_timeout", "mode", "session"};
/// Nothing if the option is none of these.
std::optional<status> set_option(link_options& o, std::string_view name, std::string_view value);

}  // namespace holdfast::store::sql
