#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/tcp.hpp"

namespace harness {

/// Speaks just enough Redis to be opened, for what a real server cannot be brought to do on demand.
class fake_redis {
 public:
  using words = std::vector<std::string>;
  /// The answer to one command, in the protocol's own form, as in "-ERR no\r\n"; empty for the
  /// usual one: a greeting, the lines of INFO, "+OK"; or this, to end the connection.
  static constexpr const char* hang_up = "hang up";
  using answers = std::function<std::string(const words& command)>;

  explicit fake_redis(answers say);

  int port() const { return server_.port(); }
  std::string url(const std::string& options = {}) const {
    return "redis://127.0.0.1:" + std::to_string(server_.port()) + options;
  }

 private:
  fake_server server_;
};

/// One bulk string of the protocol.
std::string bulk(const std::string& text);

}  // namespace harness
