#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "harness/temp_dir.hpp"

namespace harness {

/// Etcd servers of this test's own that elect a leader among them: free ports, private data in
/// memory. A machine without the server (Debian: etcd-server, etcd-client) fails the test.
class etcd_cluster {
 public:
  /// `arguments` are for each of them, as in {"--auth-token", "simple"}.
  explicit etcd_cluster(int servers = 3, std::vector<std::string> arguments = {});
  ~etcd_cluster();
  etcd_cluster(const etcd_cluster&) = delete;

  int size() const { return static_cast<int>(members_.size()); }
  int port(int server) const;
  /// "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"
  std::string hosts() const;
  std::string url(const std::string& rest = "/locks?session=10s") const {
    return "etcd://" + hosts() + rest;
  }

  /// What etcdctl prints, after it has read a line; throws if it fails.
  std::string ctl(const std::string& words, const std::string& reads = {}) const;
  /// The sum over all servers of what they count under that name (/metrics).
  long counted(const std::string& name) const;
  /// Which one leads; -1 if there is none at the moment.
  int leader() const;
  /// Blocks until all servers that run follow one leader.
  void until_whole() const;

  void kill(int server);
  void start(int server);
  void stop(int server);
  void resume(int server);

 private:
  struct member {
    pid_t pid = -1;
    int port = 0;
    int peer_port = 0;
    int metrics_port = 0;
    std::string data;
  };
  bool starts();
  std::string metrics(int server) const;

  temp_dir dir_;
  std::vector<std::string> arguments_;
  std::vector<member> members_;
};

}  // namespace harness
