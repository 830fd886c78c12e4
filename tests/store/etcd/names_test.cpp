#include "store/etcd/names.hpp"

#include <gtest/gtest.h>

#include "harness/seed.hpp"
#include "store/contender_text/text.hpp"

namespace {

using namespace holdfast::store;
using namespace holdfast::store::etcd;

TEST(etcd_names, any_bytes_come_back_and_are_one_part_of_a_key) {
  harness::random random;
  for (int i = 0; i < 2'000; ++i) {
    std::string name;
    for (int n = random.between(1, 12); n > 0; --n)
      name += static_cast<char>(random.between(0, 255));
    const auto part = escape(name);
    ASSERT_EQ(contender_text::unescape(part), name);
    ASSERT_EQ(part.find('/'), std::string::npos);
  }
  EXPECT_EQ(escape("orders"), "orders") << "what others may share is called as it is";
}

TEST(etcd_names, the_end_of_a_prefix_is_the_first_key_behind_it) {
  EXPECT_EQ(end_of("/locks/a/"), "/locks/a0");
  EXPECT_EQ(end_of("a\xff\xff"), "b");
  EXPECT_EQ(end_of("\xff"), std::string(1, '\0')) << "which etcd reads as: all of them";
}

TEST(etcd_names, a_contender_is_read_back_from_its_key) {
  contender c;
  c.owner = {1, 2};
  c.kind = kind::semaphore;
  c.capacity = 4;
  c.weight = 2;
  c.node = place_for(0x694d7c9a2f1e3b05, c);
  EXPECT_TRUE(c.node.starts_with("694d7c9a2f1e3b05.")) << c.node;
  EXPECT_EQ(contender_at(c.node), c);
}

TEST(etcd_names, another_program_s_lease_wants_all_and_other_nodes_are_no_contenders) {
  const auto other = contender_at("694d7c9a2f1e3b05");
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->owner);
  EXPECT_EQ(other->weight, ~std::uint32_t{0});
  EXPECT_EQ(contender_at("record")->kind, kind::latch);
  for (const char* node : {"", "notes", "694d/x", "694d.hf1.m", "Record", "694D"}) {
    EXPECT_FALSE(contender_at(node)) << node;
  }
}

TEST(etcd_names, contender_data_written_as_a_value_is_read_back) {
  contender_data p;
  p.weight = 5;
  p.lease_us = 30'000'000;
  p.since_wall_at = 1'700'000'000'000'000;
  p.note = "host 1 program why\nand more";
  const auto back = contender_data_of(value_of(p), 77);
  EXPECT_EQ(back.weight, 5U);
  EXPECT_EQ(back.since_wall_at, p.since_wall_at);
  EXPECT_EQ(back.note, p.note);
  EXPECT_EQ(back.fence, 77U);
  EXPECT_EQ(contender_data_of("worker 7", 1).note, "worker 7");
  EXPECT_EQ(contender_data_of("", 1).note, "");
}

}  // namespace
