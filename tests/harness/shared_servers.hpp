#pragma once

#include <memory>
#include <string>
#include <vector>

/// Servers that many test programs share, each test under names of its own: those of one ctest run.
namespace harness {

/// What prefixes, schemas and the like begin with; and all that the user "app" of Redis servers may
/// use.
inline constexpr const char* conformance_prefix = "conformance-";

/// Servers that run until the last copy of `running` goes, and the URL they are used by.
struct servers {
  std::shared_ptr<void> running;
  std::string url;
};

/// "redis", "redis_replicas", "redis_sentinel", "redis_cluster" (for tests that want no failover) ,
/// "memcached", "postgres", "postgres_pooled" (behind PgBouncer in transaction mode) or "mariadb"
/// (whose URL lacks the name of a database).
servers start_servers(const std::string& kind);

/// Starts them in a process of their own, and returns when they can be used. A file in `folder`
/// says where they are, and whoever removes it ends them; as does the end of the program that
/// called this one (ctest).
void share_servers(const std::string& kind, const std::string& folder);

/// The URL of the ones that are shared (the environment names the folder, HOLDFAST_TEST_SERVERS);
/// by hand, without any, they are this program's own.
std::string url_of_servers(const std::string& kind);

}  // namespace harness
