#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/server_process.hpp"
#include "harness/shared_memory.hpp"
#include "harness/temp_dir.hpp"

namespace harness {

/// A MariaDB of this test's own, on a free port and with fresh data, whose user admin may do
/// everything without a password. On a machine without mariadb-server the test fails.
class mariadb_server {
 public:
  /// `options` are added to its command line.
  explicit mariadb_server(std::vector<std::string> options = {});
  ~mariadb_server();
  mariadb_server(const mariadb_server&) = delete;

  int port() const { return port_; }
  /// The server's URL, to which the name of a database must be added.
  std::string url() const { return url_of(port_); }
  static std::string url_of(int port) {
    return "mariadb://admin@127.0.0.1:" + std::to_string(port) + "/";
  }

  void start();
  /// Kills the server at once, as in a crash.
  void kill() { process_.end(9); }
  void stop() const { process_.stop(); }
  void resume() const { process_.resume(); }

  /// From now on the server's wall clock differs from the machine's by this much.
  void shift_clock(std::chrono::microseconds by) { *clock_shift_ = by.count(); }

 private:
  std::string file(const std::string& name) const { return dir_.file(name); }

  temp_dir dir_;
  shared<std::atomic<std::int64_t>> clock_shift_{dir_.file("clock-shift")};
  std::vector<std::string> options_;
  int port_ = 0;
  server_process process_;
};

}  // namespace harness
