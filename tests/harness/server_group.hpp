#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/fault_proxy.hpp"
#include "harness/server_process.hpp"
#include "harness/temp_dir.hpp"

namespace harness {

/// Servers of this test's own that elect a leader: free ports, private data, run as the test's
/// user. In a run with $HOLDFAST_DELAYS their clients reach each of them through a proxy in this
/// process, because the preloaded library delays no server that is written in Go or Java.
class server_group {
 public:
  virtual ~server_group() = default;
  server_group(const server_group&) = delete;

  int size() const { return static_cast<int>(members_.size()); }
  int port(int server) const { return of_clients(members_.at(static_cast<std::size_t>(server))); }
  /// A list such as "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3".
  std::string hosts() const;
  std::string url(const std::string& rest = "/locks?session=10s") const {
    return scheme_ + "://" + hosts() + rest;
  }
  /// The same with one server only, perhaps through another port.
  std::string url_at(int port, const std::string& rest) const {
    return scheme_ + "://127.0.0.1:" + std::to_string(port) + rest;
  }

  /// The leader's number; -1 if there is none at the moment.
  virtual int leader() const = 0;
  /// Blocks until there is a leader, and all running servers follow it.
  virtual void until_whole() const = 0;

  void kill(int server) { process(server).end(9); }
  void start(int server);
  void stop(int server) { process(server).stop(); }
  void resume(int server) { process(server).resume(); }
  /// Copies the data of a killed server, and brings the copy back.
  void save_data(int server) const;
  void restore_data(int server) const;

 protected:
  struct member {
    server_process process;
    int port = 0;  ///< the server's own
    int peer_port = 0;
    int third_port = 0;
    std::string data;  ///< a folder that does not exist yet
    std::unique_ptr<fault_proxy> slow_network{};
  };

  server_group(std::string scheme, int servers, const std::string& folder);
  /// For the constructor: starts all servers, and throws if that fails (`package` is not
  /// installed).
  void begin(const std::string& package);
  bool is_up(int server) const {
    return members_.at(static_cast<std::size_t>(server)).process.pid() > 0;
  }
  const std::vector<member>& members() const { return members_; }

  /// Ports and data folders are chosen; a subclass prepares everything else here.
  virtual void prepare() {}
  virtual std::vector<std::string> command(int server) const = 0;

 private:
  static int of_clients(const member& m) {
    return m.slow_network ? m.slow_network->port() : m.port;
  }
  server_process& process(int server) {
    return members_.at(static_cast<std::size_t>(server)).process;
  }
  void choose(int attempt);
  bool starts(const std::string& package);

  const std::string scheme_;
  temp_dir dir_;
  std::vector<member> members_;
};

}  // namespace harness
