#include "tool/store_metrics.hpp"

#include <fstream>
#include <iterator>

#include "harness/redis_server.hpp"
#include "tool/fixture.hpp"
#include "tool/survey/board.hpp"

namespace tool_test {

namespace {

using namespace std::chrono_literals;
using holdfast::metrics_format;
using holdfast::participant;
using holdfast::tool::listed_name;

const std::chrono::system_clock::time_point noon{1'000'000s};

participant since(std::chrono::seconds ago) {
  participant p;
  p.since = noon - ago;
  return p;
}

listed_name named(const std::string& name, const std::string& kind,
                  std::vector<participant> holders, std::vector<participant> waiters = {}) {
  listed_name n;
  n.info.name = name;
  n.info.kind = kind;
  n.info.holders = std::move(holders);
  n.info.waiters = std::move(waiters);
  return n;
}

holdfast::tool::snapshot snapshot(std::vector<listed_name> names) {
  holdfast::tool::snapshot s{.store = "redis://h", .names = std::move(names)};
  s.health.reachable = true;
  s.health.round_trip = 1ms;
  s.health.round_asked = 2ms;
  return s;
}

std::string text_of(const holdfast::tool::snapshot& s) {
  return holdfast::tool::store_metrics({&s, 1}, noon, metrics_format::prometheus);
}

testing::AssertionResult has(const std::string& text, const std::string& line) {
  if (('\n' + text).find('\n' + line + '\n') != text.npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << line << " is not in\n" << text;
}

std::string of(const std::string& name, const std::string& kind, const std::string& group) {
  return name + "{store=\"redis://h\",kind=\"" + kind + "\",group=\"" + group + "\"} ";
}

class store_metrics_command : public holdfast_tool {};

}  // namespace

TEST(store_metrics, sum_up_the_names_of_a_kind_and_group) {
  const auto text = text_of(snapshot({named("a:1", "mutex", {since(5s)}, {since(2s), since(1s)}),
                                      named("a:2", "mutex", {since(9s)}),
                                      named("a:3", "semaphore", {since(1s), since(1s)})}));
  EXPECT_TRUE(has(text, of("holdfast_store_names", "mutex", "a") + "2"));
  EXPECT_TRUE(has(text, of("holdfast_store_held", "mutex", "a") + "2"));
  EXPECT_TRUE(has(text, of("holdfast_store_waiting", "mutex", "a") + "2"));
  EXPECT_TRUE(has(text, of("holdfast_store_oldest_hold_seconds", "mutex", "a") + "9"));
  EXPECT_TRUE(has(text, of("holdfast_store_oldest_wait_seconds", "mutex", "a") + "2"));
  EXPECT_TRUE(has(text, of("holdfast_store_held", "semaphore", "a") + "2"));
  EXPECT_TRUE(has(text, "holdfast_store_round_trip_seconds{store=\"redis://h\"} 0.001"));
}

TEST(store_metrics, ages_end_at_the_last_query) {
  holdfast::tool::board seen{0, "redis://h"};
  seen.put(named("a:1", "mutex", {since(4001s)}, {since(4002s)}), noon - 4000s);
  auto known = seen.take(noon);
  known.health.reachable = true;
  EXPECT_TRUE(has(text_of(known), of("holdfast_store_oldest_hold_seconds", "mutex", "a") + "1"));
  EXPECT_TRUE(has(text_of(known), of("holdfast_store_oldest_wait_seconds", "mutex", "a") + "2"));
}

TEST(store_metrics, the_smallest_groups_of_too_many_are_counted_together) {
  std::vector<listed_name> names;
  for (int i = 0; i < 70; ++i) {
    const std::string group = "g" + std::to_string(i);
    for (int n = 0; n <= i; ++n) {
      names.push_back(named(group + ':' + std::to_string(n), "mutex", {}));
    }
  }
  const auto text = text_of(snapshot(std::move(names)));
  EXPECT_TRUE(has(text, of("holdfast_store_names", "mutex", "g69") + "70"));
  EXPECT_TRUE(has(text, of("holdfast_store_names", "mutex", "other") + "21")) << "1+2+3+4+5+6";
}

TEST(store_metrics, an_election_without_a_leader_shows) {
  const auto text =
      text_of(snapshot({named("with", "election", {since(1s)}), named("without", "election", {})}));
  EXPECT_TRUE(has(text, "holdfast_store_leader{store=\"redis://h\",election=\"with\"} 1"));
  EXPECT_TRUE(has(text, "holdfast_store_leader{store=\"redis://h\",election=\"without\"} 0"));
}

TEST(store_metrics, a_scan_is_as_long_as_its_queries_and_not_known_before_the_first) {
  auto paced = snapshot({});
  paced.health.round = 200ms;  // with the pauses
  EXPECT_TRUE(has(text_of(paced), "holdfast_store_scan_seconds{store=\"redis://h\"} 0.002"));
  paced.health.round_asked = 0ms;
  EXPECT_EQ(text_of(paced).find("holdfast_store_scan_seconds{"), std::string::npos);
}

TEST(store_metrics, unreadable_entries_are_counted) {
  auto bad = named("x", "", {});
  bad.error = "damaged";
  EXPECT_TRUE(has(text_of(snapshot({bad})), "holdfast_store_unreadable{store=\"redis://h\"} 1"));
}

TEST(store_metrics, unreadable_entries_take_no_group_from_the_others) {
  std::vector<listed_name> names;
  for (int i = 0; i < 100; ++i) {
    for (const char* of_it : {":1", ":2"}) {
      names.push_back(named("bad" + std::to_string(i) + of_it, "", {}));
      names.back().error = "damaged";
    }
  }
  names.push_back(named("a", "mutex", {}));
  names.push_back(named("b", "mutex", {}));
  const auto text = text_of(snapshot(std::move(names)));
  for (const char* group : {"a", "b"})
    EXPECT_TRUE(has(text, of("holdfast_store_names", "mutex", group) + "1"));
  EXPECT_EQ(text.find("\"other\""), text.npos);
}

TEST(store_metrics, of_a_store_that_is_away_only_that_is_known) {
  auto away = snapshot({named("a", "mutex", {since(1s)}), named("b", "election", {})});
  away.health.reachable = false;
  const auto text = text_of(away);
  EXPECT_TRUE(has(text, "holdfast_store_up{store=\"redis://h\"} 0"));
  for (const char* more : {"scan_seconds{", "round_trip_seconds{", "names{", "leader{"})
    EXPECT_EQ(text.find(std::string("holdfast_store_") + more), text.npos) << more;
}

TEST_F(store_metrics_command, shows_holders_and_waiters_and_replaces_a_file_in_one_step) {
  const holder held(*this, {"job:1"});
  const auto said = tool({"metrics"});
  EXPECT_EQ(said.code, 0) << said.err;
  const std::string labels = "{store=\"" + store + "\",kind=\"mutex\",group=\"job\"} ";
  EXPECT_TRUE(has(said.out, "holdfast_store_held" + labels + "1"));
  EXPECT_TRUE(has(said.out, "holdfast_store_up{store=\"" + store + "\"} 1"));

  const std::string file = folder.file("holdfast.prom");
  EXPECT_EQ(tool({"metrics", "-o", file, "--format", "openmetrics"}).out, "");
  std::ifstream in(file);
  const std::string written{std::istreambuf_iterator<char>(in), {}};
  EXPECT_TRUE(written.ends_with("# EOF\n")) << written;
}

TEST_F(store_metrics_command, a_store_that_is_away_is_a_state_to_be_shown) {
  const auto said = tool({"metrics", "--store", "redis://127.0.0.1:1"});
  EXPECT_EQ(said.code, 69);
  EXPECT_TRUE(has(said.out, "holdfast_store_up{store=\"redis://127.0.0.1:1/0\"} 0"));
}

TEST_F(store_metrics_command, a_store_whose_names_cannot_be_listed_is_up) {
  harness::redis_server server;
  for (const char* dialect : {"redlock", "redisson", "setnx"}) {
    const auto url = server.url(std::string("?dialect=") + dialect);
    const auto said = tool({"metrics", "--store", url});
    EXPECT_EQ(said.code, 0) << said.err;
    EXPECT_NE(said.err.find("its names are not counted: "), said.err.npos) << said.err;
    EXPECT_TRUE(has(said.out, "holdfast_store_up{store=\"" + holdfast::open(url).url() + "\"} 1"));
    EXPECT_NE(said.out.find("holdfast_store_round_trip_seconds{"), said.out.npos);
    for (const char* unknown : {"unreadable{", "scan_seconds{", "names{"})
      EXPECT_EQ(said.out.find(std::string("holdfast_store_") + unknown), said.out.npos) << said.out;
  }
  server.kill();
  EXPECT_EQ(tool({"metrics", "--store", server.url("?dialect=redlock")}).code, 69);
}

TEST_F(store_metrics_command, a_store_has_the_label_that_the_metrics_of_its_programs_have) {
  harness::redis_server server;
  const std::string file = folder.file("store.url");
  std::ofstream(file) << server.tcp_url() << '\n';
  const words urls{server.url("?prefix=jobs:"), server.tcp_url(), "file:" + file,
                   "SQLITE://" + folder.file("other.db") + "?synchronous=normal"};
  std::vector<std::string> labels;
  for (const auto& url : urls) {
    labels.push_back("holdfast_store_up{store=\"" + holdfast::open(url).url() + "\"} ");
    EXPECT_TRUE(has(tool({"metrics", "--store", url}).out, labels.back() + "1"));
  }
  server.kill();
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(has(tool({"metrics", "--store", urls[i]}).out, labels[i] + "0")) << "also away";
}

TEST_F(store_metrics_command, a_store_that_refuses_the_user_is_not_up_in_the_file_either) {
  const harness::redis_server server;
  const std::string file = folder.file("holdfast.prom");
  std::ofstream(file) << "holdfast_store_up{store=\"of yesterday\"} 1\n";
  const auto said =
      tool({"metrics", "-o", file, "--store", "redis+unix://nobody:wrong@" + server.socket()});
  EXPECT_EQ(said.code, 77) << said.err;
  std::ifstream in(file);
  const std::string written{std::istreambuf_iterator<char>(in), {}};
  EXPECT_TRUE(
      has(written, "holdfast_store_up{store=\"redis+unix://nobody@" + server.socket() + "\"} 0"));
}

}  // namespace tool_test
