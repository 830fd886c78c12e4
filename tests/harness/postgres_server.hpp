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

/// A PostgreSQL cluster of this test's own, on a free port and a socket in a fresh folder, that
/// trusts every user of this machine. On a machine without postgresql the test fails.
class postgres_server {
 public:
  /// `configuration` adds lines to postgresql.conf.
  explicit postgres_server(std::vector<std::string> configuration = {});
  /// A standby that follows `primary`.
  postgres_server(const postgres_server& primary, std::vector<std::string> configuration);
  ~postgres_server();
  postgres_server(const postgres_server&) = delete;

  int port() const { return port_; }
  std::string file(const std::string& name) const { return dir_.file(name); }
  /// `options` such as "?schema=x".
  std::string url(const std::string& options = {}) const { return url_of(port_, options); }
  static std::string url_of(int port, const std::string& options = {},
                            const std::string& user = "postgres") {
    return "postgres://" + user + "@127.0.0.1:" + std::to_string(port) + "/postgres" + options;
  }

  void start();
  /// Shuts the server down in an orderly way, after it has disconnected all clients.
  void end() { process_.end(2); }
  /// Kills the server at once, as in a crash.
  void kill() { process_.end(3); }
  /// Stops the server with all processes that serve a connection.
  void stop() const { signal_all(19); }
  void resume() const { signal_all(18); }
  bool runs() { return process_.runs(); }
  /// Adds a line to pg_hba.conf before all others; it takes effect at a reload.
  void let_in(const std::string& rule);
  void reload() const { process_.signal(1); }
  void configure(const std::string& line);

  /// From now on the server's wall clock differs from the machine's by this much.
  void shift_clock(std::chrono::microseconds by) { *clock_shift_ = by.count(); }

 private:
  void start_on_a_free_port();
  void signal_all(int number) const;
  std::string data() const { return dir_.file("data"); }

  temp_dir dir_;
  shared<std::atomic<std::int64_t>> clock_shift_{dir_.file("clock-shift")};
  int port_ = 0;
  server_process process_;
};

/// The user that servers run as, which may not be root.
const std::string& postgres_user();

/// A pgbouncer in transaction mode in front of a server.
class pgbouncer {
 public:
  /// `pool`: the number of its connections to the server.
  explicit pgbouncer(const postgres_server& server, int pool = 2);
  int port() const { return port_; }
  std::string url(const std::string& options = {}) const {
    return postgres_server::url_of(port_, options);
  }

 private:
  temp_dir dir_;
  int port_ = 0;
  server_process process_;
};

}  // namespace harness
