#pragma once

#include <holdfast/election.hpp>
#include <string>
#include <thread>

#include "tool/fd.hpp"

namespace holdfast::tool {

/// Answers every HTTP request by who leads, as JSON: 200, or 503 if nobody does or the store does
/// not say. One client at a time, each for two seconds at most.
class leader_page {
 public:
  /// Listens on [ADDRESS]:PORT; without an address only this machine can ask. Throws failure_exit.
  leader_page(const std::string& address, session s, const std::string& name);
  leader_page(const leader_page&) = delete;
  leader_page& operator=(const leader_page&) = delete;
  ~leader_page();
  /// Where it listens: what the system chose, if the port was 0.
  int port() const noexcept { return port_; }

 private:
  void serve();
  void answer(int client);
  std::string response();

  election election_;
  const unique_fd listening_;
  const int port_;
  const bell over_;
  std::thread thread_;  // last: it uses everything above
};

}  // namespace holdfast::tool
