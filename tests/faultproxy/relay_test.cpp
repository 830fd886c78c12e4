#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "harness/eventually.hpp"
#include "harness/fault_proxy.hpp"
#include "harness/redis_server.hpp"
#include "harness/tcp.hpp"

// What the bad network does, seen from both of its ends.
namespace {

using namespace std::chrono_literals;
using harness::relay;
using harness::tcp_client;
using harness::way;

/// A server that sends back what it gets, and counts it.
class relaying : public testing::Test {
 protected:
  std::atomic<std::size_t> arrived_{0};
  harness::fake_server server_{[this](std::string& heard) -> std::optional<std::string> {
    arrived_ += heard.size();
    return std::exchange(heard, {});
  }};
  harness::fault_proxy proxy_{server_.port()};

  void expect_echo(tcp_client& c, const std::string& text = "hello") const {
    c.say(text);
    EXPECT_EQ(c.hear(text.size()), text);
  }
  void await_arrival(std::size_t bytes) const {
    harness::eventually("bytes at the server", [&] { return arrived_ >= bytes; });
  }
};

TEST_F(relaying, bytes_pass_unchanged_in_both_directions_at_once) {
  std::string text;
  for (int i = 0; i < 3'000'000; ++i) text += static_cast<char>(i * 31 % 251);
  std::vector<std::thread> crew;
  for (int i = 0; i < 3; ++i) {
    crew.emplace_back([&] {
      tcp_client c(proxy_.port());
      std::thread talker([&] { c.say(text), c.say_no_more(); });
      EXPECT_TRUE(c.hear_all() == text);
      talker.join();
    });
  }
  for (auto& t : crew) t.join();
  const auto n = proxy_.count();
  EXPECT_EQ(n.accepted, 3U);
  EXPECT_EQ(n.up, 3 * text.size());
  EXPECT_EQ(n.down, 3 * text.size());
  EXPECT_EQ(n.cut, 0U);
  EXPECT_EQ(n.open, 0U) << "a stream that ended at both sides is over";
}

TEST_F(relaying, new_connections_go_to_another_server_and_old_ones_stay) {
  harness::fake_server other{[](std::string& heard) -> std::optional<std::string> {
    return std::string(std::exchange(heard, {}).size(), '!');
  }};
  tcp_client before(proxy_.port());
  expect_echo(before);
  proxy_.with(
      [&](relay& r) { r.lead_to({"127.0.0.1", static_cast<std::uint16_t>(other.port())}); });
  tcp_client after(proxy_.port());
  after.say("hello");
  EXPECT_EQ(after.hear(5), "!!!!!");
  expect_echo(before);
}

TEST_F(relaying, a_round_trip_begins_with_a_request_and_ends_with_its_answer) {
  tcp_client c(proxy_.port());
  for (int i = 0; i < 3; ++i) expect_echo(c);
  EXPECT_EQ(proxy_.count().round_trips, 3U);
  proxy_.with([](relay& r) { r.stall(way::down); });
  c.say("a");
  await_arrival(3 * 5 + 1);
  c.say("b");
  await_arrival(3 * 5 + 2);
  EXPECT_EQ(proxy_.count().round_trips, 4U);
  proxy_.heal();
  EXPECT_EQ(c.hear(2), "ab");
  proxy_.cut();
  EXPECT_EQ(proxy_.count().round_trips, 4U) << "also of what is over";
}

TEST_F(relaying, latency_delays_each_byte_each_way) {
  proxy_.with([](relay& r) { r.set_latency(30ms); });
  tcp_client c(proxy_.port());
  const auto before = std::chrono::steady_clock::now();
  expect_echo(c);
  EXPECT_GE(std::chrono::steady_clock::now() - before, 60ms) << "it can be slower, never faster";
}

TEST_F(relaying, a_rate_is_a_limit_of_bytes_a_second) {
  proxy_.with([](relay& r) { r.set_rate(100'000); });
  tcp_client c(proxy_.port());
  const auto before = std::chrono::steady_clock::now();
  expect_echo(c, std::string(20'000, 'x'));
  EXPECT_GE(std::chrono::steady_clock::now() - before, 180ms) << "the last piece may go at once";
}

TEST_F(relaying, cut_ends_every_connection_and_new_ones_work) {
  tcp_client a(proxy_.port()), b(proxy_.port());
  expect_echo(a), expect_echo(b);
  proxy_.cut();
  EXPECT_EQ(a.hear_all(), "");
  EXPECT_EQ(b.hear_all(), "");
  EXPECT_FALSE(a.was_reset());
  tcp_client c(proxy_.port());
  expect_echo(c);
  EXPECT_EQ(proxy_.count().cut, 2U);
}

TEST_F(relaying, reset_is_seen_as_a_reset) {
  tcp_client c(proxy_.port());
  expect_echo(c);
  proxy_.with([](relay& r) { r.reset(); });
  EXPECT_EQ(c.hear_all(), "");
  EXPECT_TRUE(c.was_reset());
}

TEST_F(relaying, stalled_bytes_arrive_when_it_is_over) {
  tcp_client c(proxy_.port());
  expect_echo(c);
  proxy_.with([](relay& r) { r.stall(way::down); });
  c.say("kept");
  await_arrival(9);
  harness::eventually("what is held", [&] { return proxy_.count().held == 4; });
  proxy_.heal();
  EXPECT_EQ(c.hear(4), "kept");
  proxy_.with([](relay& r) { r.stall(way::up); });
  c.say("back");
  expect_echo(*std::make_unique<tcp_client>(server_.port()), "around it");
  EXPECT_EQ(arrived_, 18U) << "what is stalled does not arrive";
  proxy_.heal();
  EXPECT_EQ(c.hear(4), "back");
}

TEST_F(relaying, swallowed_bytes_never_arrive_and_no_client_gets_an_error) {
  tcp_client c(proxy_.port());
  expect_echo(c);
  proxy_.with([](relay& r) { r.swallow(way::down); });
  c.say("heard");
  await_arrival(10);
  EXPECT_EQ(proxy_.count().open, 1U);
  proxy_.heal();
  EXPECT_EQ(c.hear_all(), "") << "the stream is torn, so it can only end";
  EXPECT_TRUE(c.was_reset());
}

TEST_F(relaying, a_server_that_goes_away_behind_a_silent_network_is_not_noticed) {
  auto dying = std::make_unique<harness::fake_server>(
      [](std::string& heard) { return std::optional(std::exchange(heard, {})); });
  harness::fault_proxy proxy(dying->port());
  tcp_client c(proxy.port());
  expect_echo(c);
  proxy.with([](relay& r) { r.swallow(way::down), r.swallow(way::up); });
  dying.reset();
  for (int i = 0; i < 20; ++i) c.say("anybody there?");
  EXPECT_EQ(proxy.count().open, 1U);
  proxy.cut();
  EXPECT_EQ(c.hear_all(), "");
}

TEST_F(relaying, half_open_affects_existing_connections_and_not_new_ones) {
  tcp_client before(proxy_.port());
  expect_echo(before);
  proxy_.with([](relay& r) { r.half_open(); });
  before.say("lost");
  tcp_client after(proxy_.port());
  expect_echo(after);
  EXPECT_EQ(arrived_, 10U);
  EXPECT_EQ(proxy_.count().open, 2U);
  proxy_.heal();
  EXPECT_EQ(before.hear_all(), "");
  expect_echo(after);
}

TEST_F(relaying, a_reply_is_cut_after_so_many_bytes) {
  for (const std::size_t n : {1U, 4U, 5U}) {
    tcp_client c(proxy_.port());
    proxy_.with([&](relay& r) { r.cut_after(way::down, n); });
    c.say("hello");
    EXPECT_EQ(c.hear_all(), std::string("hello").substr(0, n));
    tcp_client next(proxy_.port());
    expect_echo(next);  // it was for once
  }
}

TEST_F(relaying, a_dropped_reply_leaves_the_command_carried_out) {
  tcp_client c(proxy_.port()), idle(proxy_.port());
  expect_echo(idle);
  proxy_.with([](relay& r) { r.cut_after(way::down, 0); });
  c.say("do it");
  EXPECT_EQ(c.hear_all(), "");
  EXPECT_EQ(arrived_, 10U);
  expect_echo(idle);
}

TEST_F(relaying, a_request_is_cut_after_so_many_bytes) {
  tcp_client c(proxy_.port());
  proxy_.with([](relay& r) { r.cut_after(way::up, 3); });
  c.say("hello");
  (void)c.hear_all();
  await_arrival(3);
  EXPECT_EQ(arrived_, 3U);
}

TEST_F(relaying, a_refusing_proxy_resets_new_connections_and_counts_them) {
  tcp_client before(proxy_.port());
  expect_echo(before);
  proxy_.with([](relay& r) { r.refuse(); });
  tcp_client c(proxy_.port());
  EXPECT_EQ(c.hear_all(), "");
  expect_echo(before);
  EXPECT_EQ(proxy_.count().accepted, 2U);
  proxy_.heal();
  tcp_client after(proxy_.port());
  expect_echo(after);
}

TEST_F(relaying, an_absent_server_is_reported_by_a_reset) {
  harness::fault_proxy nowhere(harness::free_port());
  tcp_client c(nowhere.port());
  EXPECT_EQ(c.hear_all(), "");
  EXPECT_TRUE(c.was_reset());
  EXPECT_EQ(nowhere.count().accepted, 1U);
  EXPECT_EQ(nowhere.count().cut, 0U) << "nobody cut it";
}

}  // namespace
