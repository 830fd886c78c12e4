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
/// trusts everybody from this machine. A machine without postgresql fails the test.
class postgres_server {
 public:
  /// More lines of postgresql.conf.
  explicit postgres_server(std::vector<std::string> configuration = {});
  /// A standby that follows that one.
  postgres_server(const postgres_server& primary, std::vector<std::string> configuration);
  ~postgres_server();
  postgres_server(const postgres_server&) = delete;

  int port() const { return port_; }
  std::string file(const std::string& name) const { return dir_.file(name); }
  /// As in "?schema=x".
  std::string url(const std::string& options = {}) const { return url_of(port_, options); }
  static std::string url_of(int port, const std::string& options = {},
                            const std::string& user = "postgres") {
    return "postgres://" + user + "@127.0.0.1:" + std::to_string(port) + "/postgres" + options;
  }

  void start();
  /// In order, once all clients are thrown out.
  void end() { process_.end(2); }
  /// At once, as in a crash.
  void kill() { process_.end(3); }
  /// With everybody who serves a connection.
  void stop() const { signal_all(19); }
  void resume() const { signal_all(18); }
  bool runs() { return process_.runs(); }
  /// A line more in pg_hba.conf, before all others; and as a reload.
  void let_in(const std::string& rule);
  void reload() const { process_.signal(1); }
  void configure(const std::string& line);

  /// The wall clock of this server from now on, as far from the machine's.
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
  /// `pool`: how many connections it makes to the server.
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
