#pragma once

#include <holdfast/election.hpp>
#include <string>

#include "tool/serve/http_server.hpp"

namespace holdfast::tool {

/// Answers every HTTP request with the leader, as JSON: 200, or 503 if there is none or the store
/// does not answer.
class leader_page {
 public:
  /// Listens on [ADDRESS]:PORT; without an address only for this machine. Throws failure_exit.
  leader_page(const std::string& address, session s, const std::string& name);
  leader_page(const leader_page&) = delete;
  leader_page& operator=(const leader_page&) = delete;
  ~leader_page() { server_.stop(); }
  /// The port on which it listens: chosen by the system, if the given port was 0.
  int port() const noexcept { return server_.port(); }

 private:
  const election election_;
  http_server server_;
};

}  // namespace holdfast::tool
