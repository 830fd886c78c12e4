#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/election.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tool/fd.hpp"

namespace holdfast::tool {

/// Answers every HTTP request by who leads, as JSON: 200, or 503 if nobody does or the store does
/// not say. 421 if it is asked for under a name that is not this machine's: a page of the web whose
/// name somebody lets point here could read the answer. Each client has two seconds in all, and a
/// slow one keeps no other waiting.
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
  struct client {
    unique_fd fd;
    boot_time until;
    std::string heard{};
    std::string answer{};  ///< not empty: what is still to be sent
  };

  void serve();
  void welcome();
  /// False when there is no more to do for it.
  bool attend(client& c);
  bool hear(client& c);
  std::string response(const std::string& request);
  bool is_meant(const std::string& request) const;

  election election_;
  const std::string host_;  ///< as --http has it; may be empty
  const unique_fd listening_;
  const int port_;
  const bell over_;
  std::vector<client> clients_;
  std::thread thread_;  // last: it uses everything above
};

}  // namespace holdfast::tool
