#include <holdfast/guard.hpp>

#include "fixture.hpp"
#include "harness/stale_holder.hpp"

namespace redis_test {
namespace {

TEST(redis_guard, the_write_of_a_former_holder_leaves_the_key_alone) {
  const harness::redis_server server;
  server.may_stay("stock:7", "the application's");
  const auto write = [&](std::uint64_t fence) {
    return server.ask(holdfast::guard::fenced_set("stock:7", std::to_string(fence), fence)) == "1";
  };
  const auto v = harness::write_after_a_pause(server.url(), write);
  EXPECT_TRUE(v.successor);
  EXPECT_FALSE(v.stale);
  EXPECT_EQ(server.ask({"HGET", "stock:7", "value"}), server.ask({"HGET", "stock:7", "fence"}));
}

TEST(redis_guard, fences_are_compared_as_numbers_of_any_size_and_equal_ones_are_accepted) {
  const harness::redis_server server;
  server.may_stay("k", "the application's");
  const auto set = [&](std::uint64_t fence) {
    return server.ask(holdfast::guard::fenced_set("k", "v", fence));
  };
  EXPECT_EQ(set(9), "1");
  EXPECT_EQ(set(10), "1");
  EXPECT_EQ(set(9), "0");
  EXPECT_EQ(set(9007199254740993), "1");
  EXPECT_EQ(set(9007199254740992), "0") << "the same number to Lua";
  EXPECT_EQ(set(9007199254740993), "1");
}

}  // namespace
}  // namespace redis_test
