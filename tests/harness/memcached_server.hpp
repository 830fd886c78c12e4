#pragma once

#include <string>
#include <vector>

#include "harness/server_process.hpp"
#include "harness/temp_dir.hpp"

namespace harness {

/// A memcached of this test's own, on a free port. A machine without it fails the test.
class memcached_server {
 public:
  /// More words of its command line.
  explicit memcached_server(std::vector<std::string> options = {});
  memcached_server(const memcached_server&) = delete;

  int port() const { return port_; }
  std::string host() const { return "127.0.0.1:" + std::to_string(port_); }
  std::string url(const std::string& options = {}) const {
    return "memcached://" + host() + options;
  }

  /// Some lines over a connection of its own; what comes back before the answer to another `mn`.
  std::string ask(const std::string& lines) const;

  /// After kill(): the same port, and nothing of what was in it.
  void start();
  void kill() { process_.end(9); }
  /// Returns when it has stopped.
  void stop() const;
  void resume() const { process_.resume(); }

 private:
  bool answers() const;

  temp_dir dir_;
  std::vector<std::string> options_;
  int port_ = 0;
  server_process process_;
};

}  // namespace harness
