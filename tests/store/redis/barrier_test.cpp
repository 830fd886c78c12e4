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
void open_with(const harness::redis_server& server, const holdfast::session& s,
               std::uint32_t participants) {
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
  open_with(server, holdfast::open(server.url("?command_timeout=1m")), many);
  EXPECT_EQ(calls(server), 34) << "with CONFIG RESETSTAT: " << server.ask({"INFO", "commandstats"});
  EXPECT_EQ(calls(server, "publish"), sessions);
}

// Each of them asks, so the question has a short path (barrier_asks.lua): the clock, the record,
// the participant, the lease that ends first, and its own.
TEST(redis_barrier, answers_a_question_with_five_commands) {
  const harness::redis_server server;
  const auto s = holdfast::open(server.url("?command_timeout=1m"));
  open_with(server, s, many);
  permits_command c;
  c.verb = permits_verb::renew;
  c.wait = true;
  c.lease_us = c.queue_lease_us = 60'000'000;
  c.owner = {7, 1};
  c.replaces = {6, 1};  // a participant names its earlier arrival in each command
  server.ask({"CONFIG", "RESETSTAT"});
  EXPECT_EQ(s.impl()->permits("b", c).value().outcome, permits_outcome::granted);
  EXPECT_EQ(calls(server), 7) << "with CONFIG RESETSTAT";
  for (const auto* const once : {"evalsha", "time", "get", "hmget", "zrange", "zscore"})
    EXPECT_EQ(calls(server, once), 1) << once;
}

// In several batches: Lua's stack has no room for that many at once.
TEST(redis_barrier, of_many_participants_lets_all_of_them_continue) {
  const harness::redis_server server;
  const auto s = holdfast::open(server.url("?command_timeout=1m"));
  open_with(server, s, 1'203);
  const auto there = s.show("b");
  EXPECT_EQ(there.holders.size(), 1'203U);
  EXPECT_EQ(there.waiters.size(), 0U);
}

TEST(redis_barrier, remembers_dropped_participants_when_a_release_finds_nothing) {
  const harness::redis_server server;
  const auto s = holdfast::open(server.url("?command_timeout=1m"));
  permits_command c;
  c.verb = permits_verb::acquire;
  c.kind = kind::barrier;
  c.capacity = 3;
  c.wait = true;
  c.lease_us = c.queue_lease_us = 60'000'000;
  c.peer = "session1";
  c.outlives_session = true;
  for (c.owner = {7, 1}; c.owner.low <= 2; ++c.owner.low)
    EXPECT_EQ(s.impl()->permits("b", c).value().outcome, permits_outcome::queued);
  const permits_command stray{.verb = permits_verb::release, .owner = {7, 9}};
  EXPECT_EQ(s.impl()->permits("b", stray).value().outcome, permits_outcome::absent);
  c.outlives_session = false;
  EXPECT_EQ(s.impl()->permits("b", c).value().outcome, permits_outcome::granted);
}

}  // namespace
