#include "harness/redis_fleet.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "harness/eventually.hpp"

namespace harness {

using namespace std::chrono_literals;

namespace {

/// A replica gets its first copy at once, and its absence is noticed at once.
std::vector<std::string> replicating(std::vector<std::string> more) {
  std::vector<std::string> words{"--repl-diskless-sync",       "yes",
                                 "--repl-diskless-sync-delay", "0",
                                 "--repl-ping-replica-period", "1"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Searches the line of the node that `who` finds, after "connected": ranges of slots, and slots
// being moved.
bool has_slot(const std::string& cluster_nodes, const std::string& who, int slot) {
  auto me = cluster_nodes.find(who);
  if (me == cluster_nodes.npos) return false;
  me += who.size();
  const auto line = cluster_nodes.substr(me, cluster_nodes.find('\n', me) - me);
  std::istringstream words(line.substr(line.find(" connected") + 10));
  for (std::string range; words >> range;) {
    if (range.front() == '[') continue;
    const auto dash = range.find('-');
    const int first = std::stoi(range);
    const int last = dash == range.npos ? first : std::stoi(range.substr(dash + 1));
    if (slot >= first && slot <= last) return true;
  }
  return false;
}

std::string demand(const redis_server& of, const std::vector<std::string>& words) {
  auto reply = of.ask(words);
  if (reply.starts_with("-")) throw std::runtime_error(words[1] + " failed: " + reply);
  return reply;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

// The "127.0.0.1:7000@17000" of each line of a primary.
std::vector<std::string> ports_of_primaries(const std::string& cluster_nodes) {
  std::vector<std::string> ports;
  std::istringstream lines(cluster_nodes);
  for (std::string line; std::getline(lines, line);) {
    if (!has(line, "master")) continue;
    const auto colon = line.find(':') + 1;
    ports.push_back(line.substr(colon, line.find('@') - colon));
  }
  return ports;
}

// A server's socket or port.
std::vector<std::string> primaries_behind(const std::string& url) {
  const auto place = url.substr(url.find("//") + 2);
  if (url.starts_with("redis+unix:")) return {place};
  const auto colon = place.find(':') + 1;
  const auto first = place.substr(colon, place.find_first_of(",/", colon) - colon);
  if (url.starts_with("redis+cluster:"))
    return ports_of_primaries(ask_redis(first, {"CLUSTER", "NODES"}));
  const auto at = ask_redis(first, {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "locks"});
  return {at.substr(at.find(' ') + 1)};
}

}  // namespace

std::string redis_keys_for_ever(const std::string& url, const std::string& prefix) {
  std::string all;
  const auto counts = [&](const std::string& key) { return key.starts_with(prefix + ":"); };
  for (const auto& where : primaries_behind(url)) all += redis_keys_for_ever_at(where, {}, counts);
  return all;
}

// ---- replicas

redis_replicas::redis_replicas(int replicas) {
  servers_.push_back(std::make_unique<redis_server>(replicating({})));
  const std::string port = std::to_string(primary().port());
  for (int i = 0; i < replicas; ++i) {
    servers_.push_back(
        std::make_unique<redis_server>(replicating({"--replicaof", "127.0.0.1 " + port})));
  }
  until_connected();
}

// The primary lists the replicas as online a moment before they acknowledge anything.
void redis_replicas::until_connected() const {
  eventually("replicas that follow", [&] {
    const auto info = primary().ask({"INFO", "replication"});
    return !has(info, "offset=0,") &&
           std::all_of(servers_.begin() + 1, servers_.end(), [](const auto& replica) {
             return replica->field({"INFO", "replication"}, "master_link_status") == "up";
           });
  });
}

// ---- sentinels

redis_sentinels::redis_sentinels(int patience_ms) {
  const std::string config =
      "sentinel monitor locks 127.0.0.1 " + std::to_string(servers_.primary().port()) +
      " 2\nsentinel down-after-milliseconds locks " + std::to_string(patience_ms) +
      "\nsentinel failover-timeout locks 3000\n";
  for (int i = 0; i < 3; ++i) {
    sentinels_.push_back(
        std::make_unique<redis_server>(std::vector<std::string>{"--sentinel"}, config));
  }
  hurry(100ms, 10s);
  eventually("sentinels that know each other", [&] {
    return std::all_of(sentinels_.begin(), sentinels_.end(), [](const auto& s) {
      const auto known = s->ask({"SENTINEL", "MASTER", "locks"});
      return has(known, "num-slaves 2") && has(known, "num-other-sentinels 2");
    });
  });
  hurry(2s, 10s);
}

void redis_sentinels::hurry(std::chrono::milliseconds announce,
                            std::chrono::milliseconds ask) const {
  for (const auto& s : sentinels_) {
    s->ask({"SENTINEL", "DEBUG", "PUBLISH-PERIOD", std::to_string(announce.count()), "INFO-PERIOD",
            std::to_string(ask.count())});
  }
}

std::string redis_sentinels::url(const std::string& options) const {
  std::string hosts;
  for (const auto& s : sentinels_) {
    hosts += (hosts.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(s->port());
  }
  return "redis+sentinel://" + hosts + "/locks" + options;
}

int redis_sentinels::primary_port(const redis_server& sentinel) const {
  const auto at = sentinel.ask({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "locks"});
  return std::stoi(at.substr(at.find(' ') + 1));
}

redis_server& redis_sentinels::primary() const {
  const int port = primary_port(*sentinels_.front());
  for (const auto& s : servers_.servers()) {
    if (s->port() == port) return *s;
  }
  throw std::runtime_error("the sentinels name a server that is none of ours");
}

void redis_sentinels::fail_over() {
  redis_server& before = primary();
  before.kill();
  eventually("another primary", [&] {
    return std::all_of(sentinels_.begin(), sentinels_.end(),
                       [&](const auto& s) { return primary_port(*s) != before.port(); });
  });
}

// ---- cluster

redis_cluster::redis_cluster(int patience_ms, const std::vector<std::string>& arguments) {
  auto words = replicating({"--cluster-enabled", "yes", "--cluster-port", "a free port",
                            "--cluster-node-timeout", std::to_string(patience_ms),
                            "--cluster-replica-validity-factor", "0"});
  words.insert(words.end(), arguments.begin(), arguments.end());
  for (int i = 0; i < 6; ++i) nodes_.push_back(std::make_unique<redis_server>(words));
  meet();
  for (std::size_t i = 0; i < 3; ++i) nodes_[i + 3]->ask({"CLUSTER", "REPLICATE", id(*nodes_[i])});
  until_well();
}

void redis_cluster::meet() const {
  for (std::size_t i = 0; i < 3; ++i) {
    nodes_[i]->ask({"CLUSTER", "ADDSLOTSRANGE", std::to_string(i * 16384 / 3),
                    std::to_string((i + 1) * 16384 / 3 - 1)});
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    nodes_[i]->ask({"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
    const auto bus = nodes_[i]->ask({"CONFIG", "GET", "cluster-port"});
    for (const auto& other : nodes_) {
      if (other == nodes_[i]) continue;
      other->ask({"CLUSTER", "MEET", "127.0.0.1", std::to_string(nodes_[i]->port()),
                  bus.substr(bus.find(' ') + 1)});
    }
  }
  eventually("nodes that know each other", [&] {
    return std::all_of(nodes_.begin(), nodes_.end(), [](const auto& n) {
      return n->field({"CLUSTER", "INFO"}, "cluster_known_nodes") == "6" &&
             !has(n->ask({"CLUSTER", "NODES"}), "handshake");
    });
  });
}

void redis_cluster::until_well() const {
  eventually("a cluster that serves all slots", [&] {
    return std::all_of(nodes_.begin(), nodes_.end(), [](const auto& n) {
      if (!n->runs()) return true;
      const bool replica = n->field({"INFO", "replication"}, "role") == "slave";
      return n->field({"CLUSTER", "INFO"}, "cluster_state") == "ok" &&
             (!replica || n->field({"INFO", "replication"}, "master_link_status") == "up");
    });
  });
}

std::string redis_cluster::url(const std::string& options) const {
  return "redis+cluster://127.0.0.1:" + std::to_string(nodes_[0]->port()) +
         ",127.0.0.1:" + std::to_string(nodes_[4]->port()) + options;
}

int redis_cluster::slot_of(const std::string& key) const {
  for (const auto& n : nodes_) {
    if (n->runs()) return std::stoi(n->ask({"CLUSTER", "KEYSLOT", key}));
  }
  throw std::runtime_error("no node runs");
}

redis_server* redis_cluster::find_owner(int slot) const {
  for (const auto& n : nodes_) {
    if (n->runs() && has_slot(n->ask({"CLUSTER", "NODES"}), "myself,master", slot)) return n.get();
  }
  return nullptr;
}

bool redis_cluster::is_served(int slot) const { return find_owner(slot) != nullptr; }

redis_server& redis_cluster::owner(int slot) const {
  if (auto* const found = find_owner(slot)) return *found;
  throw std::runtime_error("nobody has the slot " + std::to_string(slot));
}

void redis_cluster::begin_move(int slot, redis_server& from, redis_server& to) const {
  const auto number = std::to_string(slot);
  demand(to, {"CLUSTER", "SETSLOT", number, "IMPORTING", id(from)});
  demand(from, {"CLUSTER", "SETSLOT", number, "MIGRATING", id(to)});
}

// New keys are created at the new node only, so the old one is empty in the end.
void redis_cluster::end_move(int slot, redis_server& from, redis_server& to) const {
  const auto number = std::to_string(slot);
  const auto port = std::to_string(to.port());
  for (std::string key; !(key = demand(from, {"CLUSTER", "GETKEYSINSLOT", number, "1"})).empty();) {
    demand(from, {"MIGRATE", "127.0.0.1", port, key, "0", "5000", "REPLACE"});
  }
  demand(to, {"CLUSTER", "SETSLOT", number, "NODE", id(to)});
  demand(from, {"CLUSTER", "SETSLOT", number, "NODE", id(to)});
}

void redis_cluster::take_out(redis_server& node) const {
  const auto its = id(node);
  for (const auto& n : nodes_)
    if (n.get() != &node && n->runs()) demand(*n, {"CLUSTER", "FORGET", its});
}

void redis_cluster::move(int slot, redis_server& to) const {
  redis_server& from = owner(slot);
  begin_move(slot, from, to);
  end_move(slot, from, to);
  // Also waits for the epoch: the former owner knows the new one by command. If it gets the slot
  // back before it has heard of the new owner's greater epoch, all others refuse to believe it.
  const auto epoch = [](const redis_server& n) {
    return n.field({"CLUSTER", "INFO"}, "cluster_current_epoch");
  };
  eventually("all to know who has the slot", [&] {
    return std::all_of(nodes_.begin(), nodes_.end(), [&](const auto& n) {
      return !n->runs() || (epoch(*n) == epoch(to) &&
                            has_slot("\n" + n->ask({"CLUSTER", "NODES"}), "\n" + id(to), slot));
    });
  });
}

}  // namespace harness
