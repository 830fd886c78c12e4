#pragma once

#include <string>
#include <vector>

#include "harness/server_group.hpp"

namespace harness {

/// Etcd servers, with their data in memory. On a machine without etcd (Debian: etcd-server,
/// etcd-client) the test fails.
class etcd_cluster final : public server_group {
 public:
  /// `arguments` are added to each server's, such as {"--auth-token", "simple"}.
  explicit etcd_cluster(int servers = 3, std::vector<std::string> arguments = {});

  /// Returns etcdctl's output after it has read a line; throws if it fails.
  std::string ctl(const std::string& words, const std::string& reads = {}) const;
  /// The sum of that counter (/metrics) over all servers.
  long counted(const std::string& name) const;
  int leader() const override;
  void until_whole() const override;
  /// Removes the data of a killed server.
  void lose_data(int server) const;

 private:
  std::vector<std::string> command(int server) const override;
  std::string metrics(int server) const;

  std::vector<std::string> arguments_;
};

}  // namespace harness
