#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/tcp.hpp"

namespace harness {

/// A server that speaks just enough Redis to be opened, for behaviour that a real server does not
/// show on demand.
class fake_redis {
 public:
  using words = std::vector<std::string>;
  /// Returns the answer to one command in the protocol's own form, such as "-ERR no\r\n". Empty
  /// stands for the usual answer: a greeting, the lines of INFO, "+OK". `hang_up` ends the
  /// connection.
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
