#include "store/zookeeper/names.hpp"
#include "store/zookeeper/options.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/seed.hpp"
#include "store/contender_text/text.hpp"

namespace {

using namespace holdfast::store;
using namespace holdfast::store::zookeeper;
using namespace holdfast::store::contender_text;

contender someone(std::uint64_t id) {
  contender c;
  c.owner = {id, ~id};
  return c;
}

std::vector<std::uint64_t> owners(const std::vector<contender>& line) {
  std::vector<std::uint64_t> all;
  for (const auto& c : line) all.push_back(c.owner.high);
  return all;
}

TEST(zookeeper_names, an_escaped_name_is_one_part_of_a_path_and_is_read_back) {
  const std::string names[] = {"orders",
                               "a/b",
                               "100%",
                               "%2F",
                               ".",
                               "..",
                               "...",
                               "zookeeper",
                               "a\nb",
                               "caf\xc3\xa9",
                               "\xc2\x85",
                               "\xf0\x9f\x94\x92",
                               "\xef\xbf\xbd",
                               std::string("a\0b", 3),
                               " {} \"'"};
  for (const auto& name : names) {
    const std::string part = escape(name);
    EXPECT_EQ(unescape(part), name) << part;
    EXPECT_EQ(part.find('/'), std::string::npos) << part;
    EXPECT_TRUE(part != "." && part != ".." && part != "zookeeper") << part;
    for (const char c : part) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << part;
  }
  EXPECT_EQ(escape("orders"), "orders") << "what others may share is called as it is";
}

TEST(zookeeper_names, any_bytes_come_back) {
  harness::random random;
  for (int i = 0; i < 2'000; ++i) {
    std::string name;
    for (int n = random.between(1, 12); n > 0; --n)
      name += static_cast<char>(random.between(0, 255));
    ASSERT_EQ(unescape(escape(name)), name);
  }
}

TEST(zookeeper_names, a_part_that_escape_did_not_make_is_no_name) {
  for (const char* part : {"%", "%4", "%zz", "%clock-0000000001", "a%2f"}) {
    EXPECT_EQ(unescape(part), "") << part;
  }
}

TEST(zookeeper_names, a_contender_is_read_back_from_the_name_of_its_node) {
  for (const kind k : {kind::mutex, kind::shared_mutex, kind::semaphore, kind::latch}) {
    contender c = someone(7);
    c.kind = k;
    c.capacity = 1U << 30;
    c.weight = 3;
    c.raises = k == kind::shared_mutex;
    c.node = node_prefix(c) + "0000000042";
    EXPECT_EQ(in_order({c.node}), std::vector{c});
  }
}

TEST(zookeeper_names, contenders_are_ordered_by_their_numbers_and_not_by_their_names) {
  const auto one = node_prefix(someone(9)) + "0000000009";
  const auto two = node_prefix(someone(1)) + "0000000010";
  const auto three = node_prefix(someone(5)) + "0000000011";
  EXPECT_EQ(owners(in_order({three, one, two})), (std::vector<std::uint64_t>{9, 1, 5}));
}

TEST(zookeeper_names, contenders_after_a_wrapped_counter_come_last) {
  std::vector<std::string> nodes{
      node_prefix(someone(1)) + "2147483646", node_prefix(someone(2)) + "2147483647",
      node_prefix(someone(3)) + "-2147483648", node_prefix(someone(4)) + "-2147483647"};
  std::sort(nodes.begin(), nodes.end());
  do {
    EXPECT_EQ(owners(in_order(nodes)), (std::vector<std::uint64_t>{1, 2, 3, 4}));
  } while (std::next_permutation(nodes.begin(), nodes.end()));
}

TEST(zookeeper_names, a_counter_is_used_up_at_its_last_number_and_behind_it) {
  const auto numbered = [](const char* number) {
    return "/locks/n/" + node_prefix(someone(1)) + number;
  };
  for (const auto* const good : {"0000000000", "0000000009", "2147483646"})
    EXPECT_FALSE(counter_used_up(numbered(good))) << good;
  for (const auto* const last : {"2147483647", "-2147483648", "-0000000001"})
    EXPECT_TRUE(counter_used_up(numbered(last))) << last;
  EXPECT_FALSE(counter_used_up("/locks/n/record"));
}

TEST(zookeeper_names, locks_of_others_count_and_other_nodes_do_not) {
  const auto line = in_order({"0123456789abcdef__lock__0000000003", "x__rlock__0000000002", "notes",
                              "hf1.m.1.1.short__lock__0000000001", "y__lock__99999999999",
                              "lock-0000000001", "__lock__", "0000000001"});
  ASSERT_EQ(line.size(), 3U);
  EXPECT_EQ(line[0].node, "hf1.m.1.1.short__lock__0000000001") << "damaged: to be safe, a lock";
  EXPECT_EQ(line[1].weight, 1U);
  EXPECT_EQ(line[2].weight, ~std::uint32_t{0});
  for (const auto& c : line) EXPECT_FALSE(c.owner);
}

TEST(zookeeper_names, the_record_comes_first) {
  const auto line = in_order({node_prefix(someone(1)) + "0000000001", "record"});
  ASSERT_EQ(line.size(), 2U);
  EXPECT_EQ(line[0].kind, kind::latch);
}

// The client takes everything before the last colon for the host, brackets included.
TEST(zookeeper_hosts, are_passed_to_the_client_without_brackets) {
  const auto url = holdfast::base::parse_url("zookeeper://[fd00::1]:7,h,[::1]/locks");
  ASSERT_TRUE(url) << url.error().what;
  const auto o = holdfast::store::zookeeper::read_options(*url);
  ASSERT_TRUE(o) << o.error().what;
  EXPECT_EQ(o->hosts, "fd00::1:7,h:2181,::1:2181");
  EXPECT_EQ(o->url, "zookeeper://[fd00::1]:7,h:2181,[::1]:2181/locks");
}

}  // namespace
