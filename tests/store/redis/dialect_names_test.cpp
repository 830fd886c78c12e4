#include <gtest/gtest.h>

#include "store/redis/redisson.hpp"
#include "store/redis/slot_map.hpp"

namespace redis_test {
namespace {

using namespace holdfast::store::redis;

TEST(redis_dialect_names, a_key_lies_where_the_servers_of_a_cluster_expect_it) {
  EXPECT_EQ(slot_of_key("123456789"), 0x31C3);
  EXPECT_EQ(slot_of_key("{user1000}.following"), slot_of_key("user1000"));
  EXPECT_EQ(slot_of_key("foo{{bar}}zap"), slot_of_key("{bar"));
  EXPECT_NE(slot_of_key("foo{}{bar}"), slot_of_key("bar")) << "an empty tag is none";
  EXPECT_EQ(slot_of_key("foo{bar"), slot_of_key("foo{bar"));
}

TEST(redis_dialect_names, redisson_s_channels_are_named_as_its_clients_name_them) {
  using holdfast::store::kind;
  EXPECT_EQ(redisson_channel(kind::mutex, "orders"), "redisson_lock__channel:{orders}");
  EXPECT_EQ(redisson_channel(kind::mutex, "shop{1}:orders"),
            "redisson_lock__channel:shop{1}:orders");
  EXPECT_EQ(redisson_channel(kind::shared_mutex, "orders"), "redisson_rwlock:{orders}");
  EXPECT_EQ(redisson_channel(kind::latch, "a{1}"), "redisson_countdownlatch__channel__{a{1}}");
  EXPECT_EQ(redisson_beside("orders"), "{orders}:");
  EXPECT_EQ(redisson_beside("shop{1}:orders"), "shop{1}:orders:");
}

TEST(redis_dialect_names, the_mark_of_a_key_lies_at_its_node_and_begins_with_the_same_prefix) {
  EXPECT_EQ(late_mark("", "orders", true), "{orders}:holdfast:after");
  EXPECT_EQ(late_mark("shop-", "shop-orders", true), "shop-{shop-orders}:holdfast:after");
  EXPECT_EQ(late_mark("shop-", "shop-{1}:orders", true), "shop-{1}:orders:holdfast:after");
  EXPECT_EQ(late_mark("shop-", "shop-orders", false), "shop-orders:holdfast:after")
      << "a user with rights to such names alone may write it";
  for (const std::string key : {"shop-m", "shop-{1}", "shop-a{b", "shop-{a}}b", "shop-{a"}) {
    EXPECT_EQ(slot_of_key(late_mark("shop-", key, true)), slot_of_key(key)) << key;
  }
}

TEST(redis_dialect_names, an_owner_of_ours_is_read_as_it_was_written_and_no_other_is_one) {
  const holdfast::store::owner_id mine{17, 4};
  holdfast::store::owner_id read;
  EXPECT_TRUE(parse_redisson_owner(redisson_owner(mine), read));
  EXPECT_EQ(read, mine);
  EXPECT_TRUE(parse_redisson_owner(redisson_owner(mine) + ":write", read));
  for (const char* other :
       {"", ":1", "8743c9c0-0795-4907-87fd-6c719a6b4586:1", "00000000000000110000000000000004:2"}) {
    EXPECT_FALSE(parse_redisson_owner(other, read)) << other;
  }
}

TEST(redis_dialect_names, an_arrival_of_ours_is_remembered_for_as_long_as_it_may_be_repeated) {
  holdfast::store::countdown_command c;
  c.verb = holdfast::store::countdown_verb::arrive;
  c.repeats_us = 600'000'000;
  EXPECT_NE(redisson_call({"orders", "mark"}, c).find("\r\n600000\r\n"), std::string::npos);
}

}  // namespace
}  // namespace redis_test
