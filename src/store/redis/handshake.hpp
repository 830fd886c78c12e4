#pragma once

#include <optional>
#include <span>
#include <vector>

#include "store/redis/resp.hpp"
#include "store/redis/transport.hpp"

namespace holdfast::store::redis {

/// A connection that is logged in and has selected its database and loaded its scripts: a stream,
/// and its reader.
struct connection {
  std::unique_ptr<transport> wire;
  resp_reader reader;
  bool resp3 = false;
  /// How far, at least, the server's clock is ahead of ours, in microseconds; if the server
  /// returned its time.
  std::optional<std::int64_t> ahead_us{};
  whereabouts server{};
};

enum class purpose { commands, notifications };

/// Connects and greets: HELLO 3 with the login, RESP2 if the server is too old for it, SELECT; for
/// `commands` also the scripts and the server's time. `locate`, if set, finds the server's address;
/// a primary that sentinels name must confirm itself that it is one. Ends within connect_timeout,
/// or when `wake_fd` is ready.
result<std::unique_ptr<connection>> greet(const redis_options& options, purpose what_for,
                                          int wake_fd = -1);

/// Sends encoded commands, and waits for their replies. No other thread may use the connection
/// meanwhile.
result<std::vector<resp_value>> exchange(connection& c, std::string_view commands,
                                         std::size_t replies, const patience& p);

/// Checks the server's INFO: refuses servers that cannot work, warns of settings that may lose
/// locks.
status check_server(connection& c, const redis_options& options);

}  // namespace holdfast::store::redis
