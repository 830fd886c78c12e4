#include "tool/survey.hpp"

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>
#include <string>

#include "harness/eventually.hpp"

namespace holdfast::tool::survey_test {

using namespace std::chrono_literals;

namespace {

class surveys : public testing::Test {
 protected:
  surveys() : store(open("memory:")), looks(store, "*", 1ms, news) {}

  void wait_until(const std::string& what, const std::function<bool(const survey_state&)>& is_so) {
    harness::eventually(what, [&] { return is_so(looks.state()); });
  }

  bell news;
  session store;
  survey looks;
};

}  // namespace

TEST(survey_pace, questions_take_a_twentieth_of_the_time_at_most) {
  EXPECT_EQ(1ms + rest_after(1ms), 20ms);
  EXPECT_EQ(rest_after(0ms), 0ms);
}

TEST_F(surveys, names_come_when_they_are_taken_and_go_when_they_are_given_back) {
  wait_until("nothing is there", [](const auto& s) { return s.complete && s.names.empty(); });
  mutex b{store, "b"}, a{store, "a"};
  b.lock();
  a.lock();
  wait_until("both are there, by name", [](const auto& s) {
    return s.names.size() == 2 && s.names[0].info.name == "a" && s.names[1].info.name == "b" &&
           !s.names[0].info.holders.empty();
  });
  a.unlock();
  wait_until("one is gone", [](const auto& s) { return s.names.size() == 1; });
  b.unlock();
}

TEST_F(surveys, an_order_is_carried_out_between_the_questions_and_answered) {
  looks.order([](const session& s) { return "asked " + s.url(); });
  wait_until("the answer", [](const auto& s) { return s.note == "asked memory:"; });
  looks.order([](const session&) -> std::string { throw std::runtime_error("holdfast: no"); });
  wait_until("why it failed", [](const auto& s) { return s.note == "no"; });
}

}  // namespace holdfast::tool::survey_test
