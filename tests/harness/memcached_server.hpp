#pragma once

#include <string>
#include <vector>

#include "harness/server_process.hpp"
#include "harness/temp_dir.hpp"

namespace harness {

/// A memcached of this test's own, on a free port. On a machine without memcached the test fails.
class memcached_server {
 public:
  /// `options` are added to its command line.
  explicit memcached_server(std::vector<std::string> options = {});
  memcached_server(const memcached_server&) = delete;

  int port() const { return port_; }
  std::string host() const { return "127.0.0.1:" + std::to_string(port_); }
  std::string url(const std::string& options = {}) const {
    return "memcached://" + host() + options;
  }

  /// Sends some lines over a connection of its own; returns everything that arrives before the
  /// answer to a further `mn`.
  std::string ask(const std::string& lines) const;

  /// After kill(): starts it on the same port, without its former data.
  void start();
  void kill() { process_.end(9); }
  /// Returns when the server has stopped.
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
