#pragma once

#include <memory>
#include <string>
#include <vector>

/// Servers that many test programs of one ctest run share, each test under names of its own.
namespace harness {

/// The beginning of prefixes, schemas and the like; the user "app" of Redis servers may use only
/// these.
inline constexpr const char* conformance_prefix = "conformance-";

/// Servers that run until the last copy of `running` goes, and their URL.
struct servers {
  std::shared_ptr<void> running;
  std::string url;
};

/// `kind` is "redis", "redis_replicas", "redis_sentinel", "redis_cluster" (for tests without a
/// failover), "memcached", "postgres", "postgres_pooled" (behind PgBouncer in transaction mode) or
/// "mariadb" (whose URL lacks the name of a database).
servers start_servers(const std::string& kind);

/// Starts them in a process of their own, and returns when they can be used. A file in `folder`
/// contains the URL. The servers end when that file is removed, or when the program that called
/// this one (ctest) ends.
void share_servers(const std::string& kind, const std::string& folder);

/// The URL of the shared servers (the environment variable HOLDFAST_TEST_SERVERS names the folder).
/// Without shared ones, as in a run by hand, this program starts its own.
std::string url_of_servers(const std::string& kind);

}  // namespace harness
