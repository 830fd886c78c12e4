#include "fixture.hpp"

#include <deque>
#include <holdfast/testing.hpp>
#include <thread>

#include "session/session_impl.hpp"

// The cost of opening a barrier of 64, counted in commands: time would depend on the machine.
namespace {

using namespace holdfast::store;
using redis_test::calls;

constexpr std::uint32_t many = 64;
constexpr std::uint32_t sessions = 8;

/// All participants arrive; the server counts the commands of the last arrival.
void open_with(const harness::redis_server& server, std::uint32_t participants) {
  auto s = holdfast::open(server.url("?command_timeout=1m"));
  permits_command c;
  c.verb = permits_verb::acquire;
  c.kind = kind::barrier;
  c.capacity = participants;
  c.wait = true;
  c.lease_us = c.queue_lease_us = 60'000'000;
  permits_reply last;
  for (std::uint32_t i = 1; i <= participants; ++i) {
    const std::string peer = "session" + std::to_string(i % sessions);
    c.owner = {7, i};
    c.peer = peer;
    if (i == participants) server.ask({"CONFIG", "RESETSTAT"});
    last = s.impl()->permits("b", c).value();
  }
  EXPECT_EQ(last.outcome, permits_outcome::granted);
}

TEST(redis_barrier, opens_with_a_few_commands_and_one_publication_a_session) {
  const harness::redis_server server;
  open_with(server, many);
  EXPECT_EQ(calls(server, "publish"), sessions);
  EXPECT_LE(calls(server), 40);
}

// In several batches: Lua's stack has no room for that many at once.
TEST(redis_barrier, of_many_participants_lets_all_of_them_continue) {
  const harness::redis_server server;
  open_with(server, 1'203);
  const auto there = holdfast::open(server.url("?command_timeout=1m")).show("b");
  EXPECT_EQ(there.holders.size(), 1'203U);
  EXPECT_EQ(there.waiters.size(), 0U);
}

}  // namespace
