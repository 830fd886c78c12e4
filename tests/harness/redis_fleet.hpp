#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "harness/redis_server.hpp"

/// Several redis-servers that belong together, each a server of its own and ready when constructed.
namespace harness {

/// A primary with replicas that follow it.
class redis_replicas {
 public:
  explicit redis_replicas(int replicas = 2);
  redis_server& primary() const { return *servers_.front(); }
  std::string url(const std::string& options = {}) const { return primary().url(options); }
  /// Index 0 is the first replica.
  redis_server& replica(std::size_t i) const { return *servers_.at(i + 1); }
  const std::vector<std::unique_ptr<redis_server>>& servers() const { return servers_; }
  void until_connected() const;

 private:
  std::vector<std::unique_ptr<redis_server>> servers_;
};

/// A primary with two replicas, watched by three sentinels that call it "locks" and replace it when
/// it is silent for `patience_ms`.
class redis_sentinels {
 public:
  explicit redis_sentinels(int patience_ms);
  std::string url(const std::string& options = {}) const;
  redis_replicas& servers() { return servers_; }
  redis_server& sentinel(std::size_t i) const { return *sentinels_.at(i); }
  /// The server that the sentinels name as the primary.
  redis_server& primary() const;
  /// Kills the primary, and waits until all sentinels name another one.
  void fail_over();
  /// From now on the sentinels announce themselves every `announce` (2 s by default) and ask the
  /// servers about their roles every `ask` (10 s). They demote a former primary that still calls
  /// itself one after four announcements.
  void hurry(std::chrono::milliseconds announce, std::chrono::milliseconds ask) const;

 private:
  int primary_port(const redis_server& sentinel) const;
  redis_replicas servers_;
  std::vector<std::unique_ptr<redis_server>> sentinels_;
};

/// Three primaries, each with a replica. A node that is silent for `patience_ms` is replaced. Each
/// server gets the further arguments.
class redis_cluster {
 public:
  explicit redis_cluster(int patience_ms, const std::vector<std::string>& arguments = {});
  std::string url(const std::string& options = {}) const;
  const std::vector<std::unique_ptr<redis_server>>& nodes() const { return nodes_; }
  int slot_of(const std::string& key) const;
  /// The running primary that owns the slot now. Throws if there is none.
  redis_server& owner(int slot) const;
  bool is_served(int slot) const;
  /// Waits until all running nodes agree that all slots are served.
  void until_well() const;
  /// Moves one slot with its keys, as redis-cli does it; the servers answer ASK and TRYAGAIN
  /// meanwhile.
  void move(int slot, redis_server& to) const;
  /// The two steps of a move: everything before the announcement of the new owner, and the
  /// announcement.
  void begin_move(int slot, redis_server& from, redis_server& to) const;
  void end_move(int slot, redis_server& from, redis_server& to) const;
  /// Makes all other nodes forget this one; it continues to run, and does not know that.
  void take_out(redis_server& node) const;

 private:
  static std::string id(const redis_server& node) { return node.ask({"CLUSTER", "MYID"}); }
  redis_server* find_owner(int slot) const;
  void meet() const;
  std::vector<std::unique_ptr<redis_server>> nodes_;
};

/// The keys with that prefix and without an expiry, on all primaries behind the URL of one of these
/// (without a user). There must be none at any time.
std::string redis_keys_for_ever(const std::string& url, const std::string& prefix);

}  // namespace harness
