#ifdef HOLDFAST_WITH_REDIS
#include <gtest/gtest.h>

#include <array>

#include "fault/roles.hpp"
#include "harness/redis_server.hpp"

// A client of a redlock that is stopped between the quorum and the use of the lock.
namespace {

using namespace fault_test;
using namespace std::chrono_literals;
using harness::child;

std::vector<holdfast::session> open_nodes(const std::vector<std::string>& urls) {
  std::vector<holdfast::session> nodes;
  for (const auto& url : urls) nodes.push_back(holdfast::open(url));
  return nodes;
}

// Arguments: PAGE URL…. Wins the quorum, reports its fence, is stopped, and then reports the state
// of the lease, and writes to the resource (PAGE) regardless.
const harness::role quorum_client{
    "quorum_client", [](const std::vector<std::string>& args) {
      harness::resource at(args[0]);
      holdfast::redlock lock(open_nodes({args.begin() + 1, args.end()}), "job", {.lease = 500ms});
      const auto held = lock.acquire();
      harness::say(std::to_string(held.fence()));
      (void)harness::hear();
      try {
        held.check();
        harness::say("held");
      } catch (const holdfast::error& e) {
        harness::say(e.lease_gone() ? "lost" : e.what());
      }
      harness::say(held.lost().stop_requested() ? "told" : "not told");
      harness::say(at.guarded_write(held.fence()) ? "written" : "refused");
      (void)harness::hear();
      return 0;
    }};

struct scene {
  ground g;
  std::array<harness::redis_server, 3> servers;
  std::vector<std::string> urls{servers[0].url(), servers[1].url(), servers[2].url()};
  std::vector<std::string> args() const {
    std::vector<std::string> all{g.page};
    all.insert(all.end(), urls.begin(), urls.end());
    return all;
  }
};

TEST(quorum_stop, a_client_stopped_between_quorum_and_use_sees_the_loss_and_its_fence_is_refused) {
  scene s;
  child client("quorum_client", s.args());
  const auto stale = std::stoull(client.expect_line());
  client.stop();
  holdfast::redlock lock(open_nodes(s.urls), "job", {.lease = 30s});
  const auto held = lock.acquire();  // when the other's lease has ended: its process lives
  EXPECT_GT(held.fence(), stale);
  harness::resource at(s.g.page);
  EXPECT_TRUE(at.guarded_write(held.fence()));
  client.resume();
  client.tell("go on");
  EXPECT_EQ(client.expect_line(), "lost");
  EXPECT_EQ(client.expect_line(), "told");
  EXPECT_EQ(client.expect_line(), "refused");
  EXPECT_NO_THROW(held.check()) << "what it does when it comes back takes nothing from the other";
  EXPECT_EQ(at.count().refused, 1U);
}

TEST(quorum_stop, a_client_without_a_successor_sees_the_loss_too) {
  scene s;
  child client("quorum_client", s.args());
  const auto fence = std::stoull(client.expect_line());
  client.stop();
  const auto nodes = open_nodes(s.urls);
  // Waits until its lease has ended at each node, by the node's own time.
  for (const auto& node : nodes) {
    EXPECT_TRUE(holdfast::mutex(node, "job").try_acquire_for(1min));
  }
  client.resume();
  client.tell("go on");
  EXPECT_EQ(client.expect_line(), "lost");
  EXPECT_EQ(client.expect_line(), "told");
  EXPECT_EQ(client.expect_line(), "written") << "no greater fence was seen: " << fence;
}

}  // namespace
#endif
