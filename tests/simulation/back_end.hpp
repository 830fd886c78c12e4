#pragma once

#include <holdfast/store/store.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulation/world.hpp"

namespace simulation {

/// What a server stores, and how its clients access it.
class back_end {
 public:
  virtual ~back_end() = default;

  /// A session of that process.
  virtual std::unique_ptr<holdfast::store::session_store> connect(process& of) = 0;
  /// The names in use, as the server sees them.
  virtual std::vector<std::string> names() = 0;
  virtual std::string describe(std::string_view name) = 0;
  /// A holder or waiter of the name, and its process (0: unknown). Reading them changes nothing.
  struct user {
    holdfast::store::owner_id owner;
    int process = 0;
    bool waits = false;
    nanos lasts = never;  ///< by the server's clock, where the server knows it
    nanos held_for = -1;  ///< the same; a negative time of a waiter, and where it is not known
  };
  virtual std::vector<user> users(std::string_view name) = 0;
  /// Whether the first waiter fits beside the holders; false where the server does not show it.
  virtual bool lets_one_wait_for_what_is_free(std::string_view) { return false; }
  /// The remaining count of a latch; nothing if there is none or if it is not visible.
  virtual std::optional<std::uint32_t> left_at_latch(std::string_view) { return {}; }
  /// The owners that wait for the latch, and since when the server records them as waiting; empty
  /// where the server does not show them.
  virtual std::map<std::string, std::int64_t> wait_at_latch(std::string_view) { return {}; }
  /// The session of each waiter at the latch; empty where the server does not show them.
  virtual std::vector<std::string> peers_at_latch(std::string_view) { return {}; }
  /// A restart that loses the data. False if the data outlives a restart.
  virtual bool forget() = 0;
  /// A standby takes over, while the server goes on for the connections that it has. False if it
  /// has no standby.
  virtual bool divide(nanos) { return false; }
  /// Its operator restores a backup. False if there is none.
  virtual bool restore() { return false; }
  /// The server has stopped: undoes what was in progress.
  virtual void stopped() {}
  /// That process has died.
  virtual void process_died(const process&) {}
  /// Data that the server keeps for ever although no client renews it.
  virtual std::string for_ever() { return {}; }
  /// Data that the server drops before the leases in it have ended.
  virtual std::string ends_too_early() { return {}; }
  /// Keys of queues in which nobody waits.
  virtual std::string left_of_queues() { return {}; }
  /// A connection that has been in a transaction for that long, although its client has had all
  /// answers.
  virtual std::string idle_in_transaction(nanos) { return {}; }
  /// The session of each owner that is told when the name becomes free.
  virtual std::vector<std::string> peers_that_listen(std::string_view) { return {}; }
  /// Drops one of its records and returns a description of it.
  virtual std::string lose(std::uint64_t) { return "nothing"; }
};

}  // namespace simulation
