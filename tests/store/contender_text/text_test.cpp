#include "store/contender_text/text.hpp"

#include <gtest/gtest.h>

namespace {

using namespace holdfast::store;
using namespace holdfast::store::contender_text;

TEST(nodes, a_contender_data_is_read_back_and_another_s_becomes_a_note) {
  contender_data p;
  p.weight = 5;
  p.lease_us = 30'000'000;
  p.peer = "z1";
  p.note = "host 1 program why\nand more";
  const auto back = read_contender_data(write(p));
  EXPECT_EQ(back.weight, p.weight);
  EXPECT_EQ(back.lease_us, p.lease_us);
  EXPECT_EQ(back.peer, p.peer);
  EXPECT_EQ(back.note, p.note);
  EXPECT_EQ(read_contender_data("worker-7").note, "worker-7");
  EXPECT_EQ(read_contender_data("hf1. x y\n").note, "hf1. x y\n");
  EXPECT_EQ(read_contender_data("").weight, 0U);
  // The store's time is added to the lease.
  for (const std::string odd : {"9223372036854775807", "1152921504606846977", "-1"}) {
    const auto text = "hf1. 5 " + odd + " z1\nhost";
    EXPECT_EQ(read_contender_data(text).lease_us, 0) << odd;
    EXPECT_EQ(read_contender_data(text).note, text);
  }
}

TEST(nodes, only_contenders_are_read_back_as_contenders) {
  for (const auto k :
       {kind::mutex, kind::shared_mutex, kind::semaphore, kind::latch, kind::election}) {
    contender c;
    c.owner = {7, 9};
    c.kind = k;
    c.capacity = 12;
    c.weight = 3;
    c.raises = k == kind::shared_mutex;
    EXPECT_EQ(parse_contender(to_text(c)), c);
  }
  contender one;
  one.owner = {7, 9};
  const auto whole = to_text(one);
  for (std::size_t n = 0; n < whole.size(); ++n) EXPECT_FALSE(parse_contender(whole.substr(0, n)));
  EXPECT_FALSE(parse_contender("hf1.x.1.1.00000000000000070000000000000009"));
  EXPECT_FALSE(parse_contender("hf1.m.1.4294967296.00000000000000070000000000000009"));
}

}  // namespace
