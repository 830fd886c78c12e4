#pragma once

#include <holdfast/election.hpp>
#include <string>

#include "tool/serve/http_server.hpp"

namespace holdfast::tool {

/// Answers every HTTP request by who leads, as JSON: 200, or 503 if nobody does or the store does
/// not say.
class leader_page {
 public:
  /// Listens on [ADDRESS]:PORT; without an address only this machine can ask. Throws failure_exit.
  leader_page(const std::string& address, session s, const std::string& name);
  leader_page(const leader_page&) = delete;
  leader_page& operator=(const leader_page&) = delete;
  ~leader_page() { server_.stop(); }
  /// Where it listens: what the system chose, if the port was 0.
  int port() const noexcept { return server_.port(); }

 private:
  const election election_;
  http_server server_;
};

}  // namespace holdfast::tool
