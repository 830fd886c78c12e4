#pragma once

#include <functional>
#include <holdfast/store/contender_store.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "simulation/server.hpp"

namespace simulation {

/// What a consensus store (ZooKeeper, etcd) keeps: sessions that end when their client is silent,
/// queues of nodes that end with their session, and watches. Its clients run the real contender
/// family.
class consensus final : public back_end {
 public:
  explicit consensus(server& of) : of_(of) {}

  std::unique_ptr<holdfast::store::session_store> connect(process& of) override;
  std::vector<std::string> names() override;
  std::string describe(std::string_view name) override;
  std::vector<user> users(std::string_view name) override;
  std::vector<std::string> peers_at_latch(std::string_view name) override;
  bool forget() override { return false; }
  bool restore() override;

 private:
  friend class consensus_client;
  using contender = holdfast::store::contender;
  using contender_data = holdfast::store::contender_data;
  using alarm = std::function<void()>;

  struct node {
    contender who;
    contender_data says;
    std::vector<alarm> on_change{};
  };
  struct name_line {
    std::vector<node> nodes;
    std::vector<alarm> on_arrival{};
    std::string record;
    std::int64_t record_version = -1;
    std::vector<alarm> on_record{};
  };
  struct session {
    nanos ends;
  };
  /// What a backup has: no watches.
  struct copy {
    std::map<std::string, name_line, std::less<>> lines;
    std::map<std::uint64_t, session> sessions;
    std::int64_t revision = 0;
  };

  /// The number of the next change. A backup is made now and then.
  std::int64_t next_revision();
  std::string name_of_node() const;
  /// Extends the session, or begins a new one if it has ended; returns its number.
  std::uint64_t heard_of(std::uint64_t number);
  void end_sessions();
  void end(std::uint64_t number);
  name_line& at(std::string_view name) { return lines_[std::string(name)]; }
  node* find(std::string_view name, const std::string& called);
  const node* same(std::string_view name, const contender& who, std::uint64_t session);
  bool take_out(std::string_view name, std::span<const std::string> nodes);
  std::vector<contender> all_of(std::string_view name);
  static void ring(std::vector<alarm>& alarms);

  server& of_;
  std::map<std::string, name_line, std::less<>> lines_;
  std::map<std::uint64_t, session> sessions_;
  std::map<std::uint64_t, std::uint64_t> next_;  ///< the session that followed one that ended
  std::uint64_t last_session_ = 0;
  std::int64_t revision_ = 0;
  copy backup_;
  std::uint64_t sessions_before_ = 0;  ///< their clients do not use them after a restore
  int restores_ = 0;
};

}  // namespace simulation
