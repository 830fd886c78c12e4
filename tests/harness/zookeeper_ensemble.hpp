#pragma once

#include <string>
#include <vector>

#include "harness/server_group.hpp"

namespace harness {

/// ZooKeeper servers: sessions from 200 ms to a day, empty containers removed within a second. On a
/// machine without ZooKeeper (Debian: zookeeper) the test fails.
class zookeeper_ensemble final : public server_group {
 public:
  explicit zookeeper_ensemble(int servers = 3);

  /// A server's answer to a four-letter word; empty if there is none.
  std::string ask(int server, const std::string& word,
                  std::chrono::seconds patience = std::chrono::minutes(1)) const;
  /// The number after a key of `mntr`.
  long counted(int server, const std::string& key) const;
  int leader() const override;
  void until_whole() const override;
  /// Removes the data of a killed server.
  void lose_data(int server) const;

 private:
  void prepare() override;
  std::vector<std::string> command(int server) const override;
};

}  // namespace harness
