#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "harness/temp_dir.hpp"

namespace harness {

/// ZooKeeper servers of this test's own that elect a leader among them: free ports, private data,
/// sessions from 200 ms to a day, empty containers gone within a second. A machine without the
/// server (Debian: zookeeper) fails the test.
class zookeeper_ensemble {
 public:
  explicit zookeeper_ensemble(int servers = 3);
  ~zookeeper_ensemble();
  zookeeper_ensemble(const zookeeper_ensemble&) = delete;

  int size() const { return static_cast<int>(members_.size()); }
  int port(int server) const;
  /// "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"
  std::string hosts() const;
  std::string url(const std::string& rest = "/locks?session=10s") const {
    return "zookeeper://" + hosts() + rest;
  }

  /// What a server says to a four-letter word; empty if it does not answer.
  std::string ask(int server, const std::string& word) const;
  /// The number behind a key of `mntr`.
  long counted(int server, const std::string& key) const;
  /// Which one leads; -1 if there is none at the moment.
  int leader() const;
  /// Blocks until there is a leader, and all servers that run follow.
  void until_whole() const;

  void kill(int server);
  void start(int server);
  void stop(int server);
  void resume(int server);

 private:
  struct member {
    pid_t pid = -1;
    int port = 0;
    int quorum_port = 0;
    int election_port = 0;
    std::string config;
  };
  void write_configs();
  bool starts();

  temp_dir dir_;
  std::vector<member> members_;
};

}  // namespace harness
