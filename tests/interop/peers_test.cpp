#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "harness/memcached_server.hpp"
#include "harness/redis_server.hpp"
#include "harness/temp_dir.hpp"
#include "interop/arena.hpp"

namespace interop_test {
namespace {

using namespace std::chrono_literals;

/// Twelve seconds, longer than four leases of the killed processes; the nightly tests run longer.
std::chrono::seconds altogether() {
  const char* const said = std::getenv("HOLDFAST_PEERS_SECONDS");
  return said == nullptr ? 12s : std::chrono::seconds(std::atol(said));
}

// All run at the same time, each with a lock of its own: together they take no longer than one.
TEST(peers, one_at_a_time_holds_the_lock_and_all_go_on_after_a_kill) {
  ASSERT_TRUE(std::filesystem::exists(npm_packages()))
      << "no " << npm_packages() << ": scripts/install-deps.sh test";
  const harness::temp_dir dir;
  const harness::memcached_server cache;
  const harness::redis_server redis, second, third;
  redis.may_stay("*", "setnx and Redisson have keys for ever");
  const auto one = [&](const std::string& options) {
    return std::vector<std::string>{redis.tcp_url(options)};
  };
  const auto three = [&](const std::string& options) {
    return std::vector<std::string>{redis.tcp_url(options), second.tcp_url(options),
                                    third.tcp_url(options)};
  };
  const auto port = std::to_string(redis.port());
  const auto ports =
      port + "," + std::to_string(second.port()) + "," + std::to_string(third.port());
  const std::vector<party> parties{
      {"redis-py", "redis_py_peer.py", one("?dialect=redlock"), port},
      {"node-redlock", "redlock_peer.js", one("?dialect=redlock"), port},
      {"node-redlock-on-three", "redlock_peer.js", three("?dialect=redlock"), ports},
      {"redis-semaphore", "redis_semaphore_peer.js", one("?dialect=redlock&prefix=mutex:"), port},
      {"setnx", "setnx_peer.py", one("?dialect=setnx"), port},
      {"redisson", "redisson_peer.py", one("?dialect=redisson"), port},
      {"redisson-fair", "redisson_fair_peer.py", one("?dialect=redisson"), port,
       shared_as::fair_mutex},
      {"redisson-read-write", "redisson_rw_peer.py", one("?dialect=redisson"), port,
       shared_as::shared_mutex},
      {"redisson-semaphore", "redisson_semaphore_peer.py", one("?dialect=redisson"), port,
       shared_as::semaphore},
      {"redisson-permits", "redisson_permits_peer.py", one("?dialect=redisson"), port,
       shared_as::expiring},
      {"memcached", "memcached_peer.py", {cache.url()}, std::to_string(cache.port())}};

  std::vector<std::unique_ptr<arena>> arenas;
  for (const auto& p : parties) arenas.push_back(std::make_unique<arena>(p, dir.file("")));
  shift pauses;
  for (const auto& a : arenas) a->prepare();
  for (const auto& a : arenas) a->begin();
  (void)pauses.over_after(altogether() / 3);
  for (const auto& a : arenas) a->kill_one_of_theirs();
  (void)pauses.over_after(altogether() / 3);
  for (const auto& a : arenas) a->kill_one_of_ours();
  (void)pauses.over_after(altogether() / 3);
  for (const auto& a : arenas) {
    for (const auto& t : a->end()) {
      EXPECT_GT(t.sections, 0) << a->title() << ": everybody gets in";
      EXPECT_EQ(t.violations, 0) << a->title();
    }
  }
}

}  // namespace
}  // namespace interop_test
