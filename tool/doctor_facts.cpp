#include "tool/doctor_facts.hpp"

#include <algorithm>
#include <charconv>

#include "tool/serve/url_query.hpp"
#include "tool/store_url.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

/// Judges the facts of one server.
class judge {
 public:
  judge(std::string_view url, const store::facts& all, std::string server, findings& to)
      : url_(url), all_(all), server_(std::move(server)), to_(to) {}

  std::string_view value(std::string_view name) const {
    for (const auto& f : all_)
      if (f.server == server_ && f.name == name) return f.value;
    return {};
  }
  bool is(std::string_view name, std::string_view expected) const {
    return value(name) == expected;
  }
  /// Whether the value is known and differs.
  bool is_not(std::string_view name, std::string_view expected) const {
    return !value(name).empty() && value(name) != expected;
  }
  std::uint64_t number(std::string_view name) const {
    const auto text = value(name);
    std::uint64_t n = 0;
    std::from_chars(text.data(), text.data() + text.size(), n);
    return n;
  }
  std::string text(std::string_view name) const { return std::string(value(name)); }
  /// The value of an option of the URL.
  std::optional<std::string> option(std::string_view name) const {
    const auto place = url_.substr(0, url_.find('?'));
    return query_value(url_.substr(std::min(place.size() + 1, url_.size())), name);
  }
  const store::facts& all() const noexcept { return all_; }

  void add(severity level, std::string topic, const std::string& message, std::string remedy = {},
           int code = exit_code::config) {
    const std::string where = server_.empty() ? "" : server_ + ": ";
    to_.push_back({level, std::move(topic), where + message, std::move(remedy), code});
  }
  void version(const std::string& product, std::string_view name) {
    if (!value(name).empty()) add(severity::ok, "version", product + ' ' + text(name));
  }

 private:
  const std::string_view url_;
  const store::facts& all_;
  const std::string server_;
  findings& to_;
};

void judge_eviction(judge& j) {
  const std::string policy = j.text("maxmemory_policy");
  if (policy.empty()) return;
  const bool drops = policy != "noeviction";
  const bool limited = j.number("maxmemory") > 0;
  constexpr auto remedy = "redis-cli config set maxmemory-policy noeviction, and in redis.conf";
  if (drops && limited) {
    j.add(severity::problem, "eviction",
          "maxmemory-policy is " + policy + ": when the memory is full, held locks may be dropped",
          remedy);
  } else if (drops) {
    j.add(severity::note, "eviction",
          "maxmemory-policy is " + policy +
              ", and the server has no limit of memory: with a limit it may drop held locks",
          remedy);
  } else {
    j.add(severity::ok, "eviction", "maxmemory-policy is noeviction");
  }
  if (drops && j.number("evicted_keys") > 0) {
    j.add(severity::warning, "eviction",
          j.text("evicted_keys") +
              " keys were dropped since the server started; locks may have "
              "been among them",
          "keep locks on a server of their own, or give it more memory");
  }
}

void judge_redis_disk(judge& j) {
  if (j.is("aof_enabled", "0")) {
    j.add(severity::warning, "persistence",
          "there is no append-only file: a server that restarts forgets the held locks",
          "redis-cli config set appendonly yes, and in redis.conf; with appendfsync always no lock "
          "is lost");
  } else if (j.is("aof_enabled", "1")) {
    j.add(severity::ok, "persistence", "the append-only file is on");
  }
  for (const auto* const name : {"rdb_last_bgsave_status", "aof_last_write_status"}) {
    if (!j.is_not(name, "ok")) continue;
    j.add(severity::problem, "persistence",
          std::string(name) + " is " + j.text(name) + ": the server may refuse writes",
          "make room on its disk, or look at its log", exit_code::unavailable);
  }
  if (j.is("loading", "1")) {
    j.add(severity::warning, "persistence", "the server is still loading its data",
          "wait until the data is loaded");
  }
}

void judge_redis_replicas(judge& j) {
  if (!j.is("role", "master")) return;
  const bool waits = j.option("ack").value_or("any") != "any";
  const auto replicas = j.number("connected_slaves");
  if (waits && replicas == 0) {
    j.add(severity::problem, "replicas",
          "the URL asks for acknowledgement (ack=), and no replica is connected: nothing can be "
          "acquired",
          "start the replicas, or leave out ack=", exit_code::unavailable);
  } else if (!waits && replicas > 0) {
    j.add(severity::note, "replicas",
          std::to_string(replicas) +
              " replicas, and grants do not wait for them: a replica that takes over may not know "
              "of the last grants",
          "?ack=1 waits for one of them (docs/stores/redis.md)");
  } else if (replicas > 0) {
    j.add(severity::ok, "replicas",
          std::to_string(replicas) + " connected; grants wait for their acknowledgement");
  }
}

void judge_redis(judge& j) {
  if (j.is("denied", "INFO")) {
    return j.add(severity::note, "settings",
                 "this user may not ask for INFO, so eviction, persistence and replicas are "
                 "not known",
                 "run doctor as a user with +info");
  }
  j.version(j.value("valkey_version").empty() ? "Redis" : "Valkey, as Redis", "redis_version");
  judge_eviction(j);
  judge_redis_disk(j);
  judge_redis_replicas(j);
}

void judge_connections(judge& j) {
  const auto used = j.number("connections");
  const auto most = j.number("max_connections");
  if (most == 0 || used * 5 < most * 4) return;
  j.add(severity::warning, "connections",
        std::to_string(used) + " of " + std::to_string(most) + " connections are in use",
        "raise max_connections, or use fewer sessions");
}

/// Rights that only sweeps need. A sweep without them fails without an error message.
void judge_rights_of_sweeps(judge& j, const std::string& page) {
  for (const auto& f : j.all()) {
    if (f.name != "missing_right") continue;
    std::string what = "this user has no right to " + f.value +
                       ": rows of names that nobody uses stay in the table";
    if (f.value.starts_with("delete"))
      what += ", and a multi_lock or an admission that has to wait is refused";
    j.add(severity::problem, "rights", what, "grant " + f.value + " to this user (" + page + ")",
          exit_code::not_permitted);
  }
}

void judge_postgres(judge& j) {
  j.version("PostgreSQL", "server_version");
  if (j.is("fsync", "off")) {
    j.add(severity::problem, "persistence",
          "fsync is off: a server that crashes may come back without its last grants, or damaged",
          "fsync = on in postgresql.conf");
  } else if (j.is("synchronous_commit", "off")) {
    j.add(severity::warning, "persistence",
          "synchronous_commit is off: a server that crashes forgets the last grants",
          "alter role … set synchronous_commit = on");
  } else if (!j.value("fsync").empty()) {
    j.add(severity::ok, "persistence", "grants are on disk before they are answered");
  }
  if (j.number("replicas") > 0 && j.value("synchronous_standby_names").empty()) {
    j.add(severity::note, "replicas",
          j.text("replicas") +
              " standbys, and commits do not wait for them: a standby that takes over may not "
              "know of the last grants",
          "set synchronous_standby_names");
  }
  judge_connections(j);
  judge_rights_of_sweeps(j, "docs/stores/postgres.md");
  if (j.is("pooler", "on") && !j.option("listen")) {
    j.add(severity::warning, "pooler",
          "there is a pooler before the server: waiters poll, because they cannot listen",
          "?listen= with the URL of the server itself (docs/stores/postgres.md)");
  }
}

void judge_mariadb(judge& j) {
  j.version("MariaDB", "version");
  if (j.is("read_only", "ON")) {
    j.add(severity::problem, "rights", "the server is read_only", "name its primary",
          exit_code::not_permitted);
  }
  if (j.is_not("innodb_flush_log_at_trx_commit", "1")) {
    j.add(severity::warning, "persistence",
          "innodb_flush_log_at_trx_commit is " + j.text("innodb_flush_log_at_trx_commit") +
              ": a machine that crashes forgets the last grants",
          "set global innodb_flush_log_at_trx_commit = 1");
  } else if (j.is("innodb_flush_log_at_trx_commit", "1")) {
    j.add(severity::ok, "persistence", "grants are on disk before they are answered");
  }
  if (j.is("log_bin", "ON") && !j.is("rpl_semi_sync_master_enabled", "ON")) {
    j.add(severity::note, "replicas",
          "commits do not wait for the replicas: a replica that takes over may not know of the "
          "last grants",
          "set global rpl_semi_sync_master_enabled = on");
  }
  judge_rights_of_sweeps(j, "docs/stores/mariadb.md");
}

void judge_sqlite(judge& j) {
  j.version("SQLite", "sqlite_version");
  if (j.is("synchronous", "off")) {
    j.add(severity::warning, "persistence",
          "synchronous=off: a machine that crashes forgets the last grants, or damages the file",
          "?synchronous=normal, or full");
  }
  if (j.is("network", "allow")) {
    j.add(severity::warning, "file system",
          "network=allow: on a network file system locks of several machines do not exclude each "
          "other",
          "use a server, or a local disk with network=refuse");
  }
}

void judge_memcached(judge& j) {
  j.version("memcached", "version");
  if (j.number("evicted") > 0) {
    j.add(severity::problem, "eviction",
          j.text("evicted") +
              " keys were dropped since the server started; locks may have been "
              "among them",
          "keep locks on a server of their own, with -M");
  } else if (j.is("evictions", "on")) {
    j.add(severity::warning, "eviction",
          "when the memory is full, held locks may be dropped: " + j.text("bytes") + " of " +
              j.text("limit_maxbytes") + " bytes are in use",
          "start memcached with -M");
  }
  j.add(severity::note, "persistence", "a server that restarts forgets the held locks",
        "use another store where that matters (docs/choosing-a-store.md)");
}

void judge_zookeeper(judge& j) {
  if (const std::string server = j.text("server"); !server.empty()) {
    j.add(severity::ok, "server", "connected to " + server);
    j.add(severity::note, "version", "ZooKeeper does not tell its clients which version it is",
          "echo srvr | nc HOST PORT, with the host and the port of that server");
  }
  if (j.number("session_ms") == j.number("session_ms_asked")) return;
  j.add(severity::warning, "session",
        "the server made the session " + j.text("session_ms") + " ms long, and the URL asks for " +
            j.text("session_ms_asked") + " ms",
        "?session= within the server's minSessionTimeout and maxSessionTimeout");
}

void judge_etcd(judge& j) {
  j.version("etcd", "version");
  if (j.is("leader", "none")) {
    j.add(severity::problem, "quorum", "the members have no leader: nothing can be acquired",
          "bring back a majority of them", exit_code::unavailable);
  }
  for (const auto& f : j.all()) {
    if (f.name != "alarm") continue;
    j.add(severity::problem, "alarm", "the server says " + f.value,
          "etcdctl alarm list; for NOSPACE: compact, defrag, alarm disarm", exit_code::unavailable);
  }
  if (j.is("members_named", "1")) {
    j.add(severity::note, "quorum", "the URL names one member: while it is down nothing works",
          "name all members: etcd://a,b,c");
  }
}

struct speciality {
  std::string_view scheme;  ///< the beginning of the URL
  void (*judge_server)(judge&);
};

constexpr speciality known[]{
    {"redis", judge_redis},         {"postgres", judge_postgres}, {"mariadb", judge_mariadb},
    {"mysql", judge_mariadb},       {"sqlite", judge_sqlite},     {"memcached", judge_memcached},
    {"zookeeper", judge_zookeeper}, {"etcd", judge_etcd},
};

std::vector<std::string> servers_in(const store::facts& all) {
  std::vector<std::string> servers;
  for (const auto& f : all) {
    if (std::find(servers.begin(), servers.end(), f.server) == servers.end())
      servers.push_back(f.server);
  }
  return servers;
}

}  // namespace

findings judge_facts(std::string_view url, const store::facts& all) {
  findings found;
  const std::string scheme = scheme_of(url);
  const auto* const how = std::find_if(std::begin(known), std::end(known),
                                       [&](const auto& k) { return scheme.starts_with(k.scheme); });
  if (how == std::end(known)) {
    if (!all.empty())
      found.push_back(
          {severity::note, "settings",
           "doctor cannot judge the settings of a store of '" + printable(scheme) + ":'",
           "check persistence, replicas and eviction there yourself"});
    return found;
  }
  for (auto& server : servers_in(all)) {
    judge j(url, all, std::move(server), found);
    how->judge_server(j);
  }
  return found;
}

}  // namespace holdfast::tool
