#include <csignal>

#include <regex>

#include "tool/fixture.hpp"
#include "tool/round_trips.hpp"

namespace tool_test {

namespace {

using nlohmann::json;

class pings : public holdfast_tool {};

}  // namespace

TEST_F(pings, each_round_trip_is_a_line_and_the_last_line_is_the_summary) {
  const auto said = tool({"ping", "-c", "3", "-i", "1ms"});
  EXPECT_EQ(said.code, 0) << said.err;
  const std::string time = R"(\d+\.\d{3} ms)";
  const std::regex whole("(sqlite:\\S+: [123]: " + time + "\n){3}3 sent, 3 answered; least " +
                         time + ", median " + time + ", mean " + time + ", most " + time + "\n");
  EXPECT_TRUE(std::regex_match(said.out, whole)) << said.out;
}

TEST_F(pings, json_has_a_line_for_each_and_the_summary) {
  const auto said = tool({"ping", "-c", "1", "--json"});
  std::istringstream lines(said.out);
  std::string one, all;
  ASSERT_TRUE(std::getline(lines, one) && std::getline(lines, all)) << said.out;
  EXPECT_EQ(json::parse(one)["number"], 1);
  EXPECT_GT(json::parse(one)["seconds"], 0);
  EXPECT_EQ(json::parse(all)["answered"], 1);
  EXPECT_EQ(json::parse(all)["median_of"], 1);
  EXPECT_EQ(json::parse(all)["least_seconds"], json::parse(all)["most_seconds"]);
}

TEST_F(pings, a_store_that_is_away_is_69) {
  EXPECT_EQ(tool({"ping", "--store", "redis://127.0.0.1:1", "-c", "1"}).code, 69);
}

TEST_F(pings, without_a_count_a_signal_ends_it_with_the_summary) {
  program p(command({"ping", "-c", "0", "-i", "1h"}), around);
  EXPECT_NE(p.out.line().find(": 1: "), std::string::npos);
  p.signal(SIGINT);
  EXPECT_TRUE(p.out.line().starts_with("1 sent, 1 answered; "));
  EXPECT_EQ(p.wait(), 0);
}

TEST(round_trips, of_endless_pings_the_last_ones_have_a_median_and_all_the_rest) {
  using holdfast::tool::round_trips;
  using std::chrono::microseconds;
  round_trips times;
  const auto add = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i <= to; ++i) times.add(microseconds(i));
  };
  add(1, round_trips::most_kept);
  EXPECT_EQ(times.summary(0).median_of, round_trips::most_kept);
  EXPECT_EQ(times.summary(0).median, microseconds(5001));
  add(round_trips::most_kept + 1, 25'001);
  const auto all = times.summary(25'002);
  EXPECT_EQ(all.asked, 25'002u);
  EXPECT_EQ(all.answered, 25'001u);
  EXPECT_EQ(all.least, microseconds(1));
  EXPECT_EQ(all.mean, microseconds(12'501));
  EXPECT_EQ(all.most, microseconds(25'001));
  EXPECT_EQ(all.median_of, round_trips::most_kept) << "the others are still in the memory";
  EXPECT_EQ(all.median, microseconds(20'002));
}

}  // namespace tool_test
