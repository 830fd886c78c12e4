#include <gtest/gtest.h>

#include "stage.hpp"

// What a session could not give back in time, it gives back at its end.
namespace {

using namespace engine_test;
using holdfast::lease;
using holdfast::mutex;
using holdfast::testing::fault;
using verb = holdfast::store::permits_verb;

TEST(last_release, that_was_lost_on_the_way_is_made_up_for_when_the_session_ends) {
  stage s("memory:last1");
  auto other = holdfast::open("memory:last1", {.clock = s.clock});
  {
    auto session = std::make_unique<holdfast::session>(holdfast::open("memory:last1", s.options()));
    lease one = mutex(*session, "m").acquire(), two = mutex(*session, "n").acquire();
    s.script->set(verb::release, fault::drop_request);
    EXPECT_EQ(one.release(), holdfast::errc::unavailable);
    EXPECT_EQ(two.release(), holdfast::errc::unavailable);
    s.script->await(verb::release, 3);  // the keeper's try, too, and no other until time goes on
    s.script->set(verb::release, fault::none);
  }
  EXPECT_TRUE(other.show("m").holders.empty());
  EXPECT_TRUE(other.show("n").holders.empty());
}

TEST(last_release, to_a_store_that_is_away_is_tried_a_few_times_and_no_more) {
  stage s("memory:last2");
  auto other = holdfast::open("memory:last2", {.clock = s.clock});
  std::size_t before = 0;
  {
    auto session = std::make_unique<holdfast::session>(holdfast::open("memory:last2", s.options()));
    lease held = mutex(*session, "m").acquire();
    s.script->set(verb::release, fault::drop_request);
    EXPECT_EQ(held.release(), holdfast::errc::unavailable);
    s.script->await(verb::release, 2);
    before = s.script->count(verb::release);
  }
  EXPECT_GT(s.script->count(verb::release), before);
  EXPECT_LE(s.script->count(verb::release), before + 3);
  EXPECT_EQ(other.show("m").holders.size(), 1U);
}

}  // namespace
