#include "fixture.hpp"

#include "session/session_impl.hpp"

// The cost of a long queue, counted by the server in commands: time would depend on the machine.
namespace {

using namespace holdfast::store;

permits_command acquiring(std::uint64_t number, kind of = kind::mutex, std::uint32_t capacity = 1) {
  permits_command c;
  c.verb = permits_verb::acquire;
  c.kind = of;
  c.capacity = c.weight = capacity;
  c.owner = {7, number};
  c.wait = true;
  c.lease_us = c.queue_lease_us = 3'600'000'000;  // 10,000 requests come before it ends
  c.peer = "nobody";
  return c;
}

permits_command releasing(std::uint64_t number) {
  permits_command c;
  c.verb = permits_verb::release;
  c.owner = {7, number};
  return c;
}

/// The number of all commands of the server since RESETSTAT.
long long commands(const harness::redis_server& server) {
  const std::string info = server.ask({"INFO", "commandstats"});
  long long sum = 0;
  for (auto at = info.find("calls="); at != info.npos; at = info.find("calls=", at + 1))
    sum += std::stoll(info.substr(at + 6));
  return sum;
}

/// The commands of a release that hands over, and of one more acquisition, behind this many
/// waiters.
long long cost_with(std::uint64_t waiters) {
  const harness::redis_server server;
  auto s = holdfast::open(server.url());
  for (std::uint64_t i = 1; i <= waiters + 1; ++i)
    (void)s.impl()->permits("m", acquiring(i)).value();
  server.ask({"CONFIG", "RESETSTAT"});
  EXPECT_EQ(s.impl()->permits("m", releasing(1)).value().outcome, permits_outcome::done);
  EXPECT_EQ(s.impl()->permits("m", acquiring(waiters + 2)).value().position, waiters);
  return commands(server);
}

TEST(redis_queue, a_hand_over_costs_the_same_with_ten_thousand_waiters_as_with_ten) {
  EXPECT_EQ(cost_with(10'000), cost_with(10));
}

// That a server may have evicted a key is noticed by what is asked anyway. Among the first three of
// a queue, one more says when a permit ends.
TEST(redis_queue, entering_and_polling_cost_a_fixed_number_of_commands) {
  struct cost {
    kind of;
    std::uint32_t capacity;
    long long to_enter, to_ask_again;
  };
  for (const cost& most : {cost{kind::mutex, 1, 10, 10}, cost{kind::election, 1, 11, 10},
                           cost{kind::shared_mutex, 8, 17, 16}, cost{kind::semaphore, 3, 17, 16},
                           cost{kind::condition_variable, 8, 10, 9}}) {
    SCOPED_TRACE(to_string(most.of));
    const harness::redis_server server;
    auto s = holdfast::open(server.url());
    const auto costs = [&](std::uint64_t number) {
      server.ask({"CONFIG", "RESETSTAT"});
      (void)s.impl()->permits("m", acquiring(number, most.of, most.capacity)).value();
      return commands(server);
    };
    for (std::uint64_t i = 1; i <= 3; ++i) (void)costs(i);
    EXPECT_LE(costs(4), most.to_enter);
    EXPECT_LE(costs(4), most.to_ask_again);
  }
}

}  // namespace
