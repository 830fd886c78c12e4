#include "store/memcached/keys.hpp"

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "harness/failing.hpp"
#include "store/memcached/value.hpp"

namespace memcached_test {
namespace {

using namespace holdfast::store::memcached;
using holdfast::errc;

std::string key_of(std::string_view name, std::uint32_t part = 0) {
  return lock_key("holdfast", name, part).value();
}

TEST(memcached_keys, a_name_cannot_inject_a_command) {
  const std::string evil("a b\r\nflush_all\r\n\0\x7f\t%", 20);
  const std::string key = key_of(evil);
  EXPECT_EQ(key, "holdfast:a%20b%0D%0Aflush_all%0D%0A%00%7F%09%25");
  EXPECT_EQ(name_of_key("holdfast", key), evil);
}

TEST(memcached_keys, plain_names_are_not_escaped) {
  EXPECT_EQ(key_of("order:1000/caf\xc3\xa9"), "holdfast:order:1000/caf\xc3\xa9");
}

TEST(memcached_keys, names_with_the_form_of_keys_are_distinct_names) {
  EXPECT_NE(key_of("a%s1"), key_of("a", 1));
  EXPECT_NE(key_of("a%n"), counter_key(key_of("a")));
  EXPECT_NE(key_of("a%20b"), key_of("a b"));
  EXPECT_EQ(name_of_key("holdfast", key_of("a%s1", 7)), "a%s1");
  EXPECT_EQ(name_of_key("holdfast", counter_key(key_of("a"))), std::nullopt);
  EXPECT_EQ(name_of_key("holdfast", "holdfasts:a"), std::nullopt);
}

TEST(memcached_keys, a_key_that_belongs_to_no_name_is_ignored) {
  for (const std::string key :
       {"a b", "a\r\nflush_all", "50%off", "a%41", "a%s1 v", "a%s", "a%sx", "a%s1\r\nflush_all"}) {
    EXPECT_EQ(name_of_key("holdfast", "holdfast:" + key), std::nullopt) << key;
  }
}

TEST(memcached_keys, a_key_never_has_more_than_250_bytes) {
  const std::string prefix(32, 'p');
  const auto longest = lock_key(prefix, std::string(205, 'a'), 0);
  ASSERT_TRUE(longest);
  EXPECT_LE(lock_key(prefix, std::string(205, 'a'), 1U << 30)->size(), max_key_bytes);
  EXPECT_LE(counter_key(*longest).size(), max_key_bytes);
  EXPECT_EQ(lock_key(prefix, std::string(205, ' '), 0).error().code, errc::invalid_name);
}

TEST(memcached_options, an_impossible_timeout_is_refused) {
  for (const char* const option : {"command_timeout=0ms", "connect_timeout=0ms",
                                   "command_timeout=10000000000h", "connect_timeout=25h"}) {
    const auto refused =
        harness::outcome_of_opening("memcached://127.0.0.1:1?" + std::string(option));
    EXPECT_EQ(refused.reason, errc::invalid_argument) << option << ": " << refused.text;
  }
}

TEST(memcached_keys, an_added_server_moves_only_its_own_names) {
  std::vector<address> two{{"a", 1}, {"b", 1}};
  std::vector<address> three{{"a", 1}, {"b", 1}, {"c", 1}};
  int moved = 0;
  for (int i = 0; i < 300; ++i) {
    const auto name = std::to_string(i);
    const auto now = server_of(name, three);
    if (now == 2)
      ++moved;
    else
      EXPECT_EQ(server_of(name, two), now);
  }
  EXPECT_GT(moved, 50);
  EXPECT_LT(moved, 150);
}

TEST(memcached_keys, only_a_value_that_was_written_is_read_as_one) {
  holdfast::store::slot_entry e;
  e.owner = {1, 2};
  e.kind = holdfast::store::kind::semaphore;
  e.capacity = 7;
  e.fence = 9;
  e.since_wall_at = 11;
  e.note = "host 1 program why not";
  const auto text = write_value(e);
  const auto back = read_value(text);
  ASSERT_TRUE(back);
  EXPECT_EQ(write_value(*back), text);
  for (const char* other : {"", "hf1", "hf2 0123456789abcdef0123456789abcdef mutex 1 0 0 x",
                            "hf1 0123456789abcdef0123456789abcdef mutex 0 0 0 x",
                            "hf1 00000000000000000000000000000000 mutex 1 0 0 x", "17", "hf1 x"}) {
    EXPECT_FALSE(read_value(other)) << other;
  }
}

holdfast::result<memcached_options> parse(const std::string& url) {
  return read_options(*holdfast::base::parse_url(url));
}

TEST(memcached_urls, say_where_the_servers_are) {
  const auto o = parse("memcached://h2:7,h1,[::1]:8/");
  ASSERT_TRUE(o);
  EXPECT_EQ(o->url, "memcached://[::1]:8,h1:11211,h2:7");
  EXPECT_EQ(parse("memcached://h1?prefix=a.")->url, "memcached://h1:11211?prefix=a.");
  EXPECT_EQ(parse("memcached://h1?prefix=holdfast")->url, "memcached://h1:11211");
  for (const std::string bad : {"", "h1", "//", "//h1,", "//h1:0", "//h1:x", "//h1:99999", "//[::1",
                                "//[::1]x", "//u:p@h1", "//h1/0", "//h1,h1:11211"}) {
    EXPECT_EQ(parse("memcached:" + bad).error().code, errc::invalid_argument) << bad;
  }
}

}  // namespace
}  // namespace memcached_test
