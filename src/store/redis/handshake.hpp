#pragma once

#include <optional>
#include <span>
#include <vector>

#include "store/redis/resp.hpp"
#include "store/redis/transport.hpp"

namespace holdfast::store::redis {

/// A connection that is logged in and has its database and scripts: a stream, and what reads it.
struct connection {
  std::unique_ptr<transport> wire;
  resp_reader reader;
  bool resp3 = false;
  /// The server's clock is that far ahead of ours, in microseconds, at least; if it says its time.
  std::optional<std::int64_t> ahead_us{};
  whereabouts server{};
};

enum class purpose { commands, notifications };

/// Connects and greets: HELLO 3 with the login, RESP2 if the server is too old for it, SELECT; the
/// scripts for `commands`, and what time the server has. The server is where `locate` says, if
/// there is one; the primary that sentinels name must say itself that it is one. Within
/// connect_timeout, or until `wake_fd` is ready.
result<std::unique_ptr<connection>> greet(const redis_options& options, purpose what_for,
                                          int wake_fd = -1);

/// Sends commands, already encoded, and waits for their replies. Nobody else may use the
/// connection.
result<std::vector<resp_value>> exchange(connection& c, std::string_view commands,
                                         std::size_t replies, const patience& p);

/// Looks at what the server says of itself: refuses what cannot work, warns of what may lose locks.
status check_server(connection& c, const redis_options& options);

}  // namespace holdfast::store::redis
