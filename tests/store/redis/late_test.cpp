#include <algorithm>
#include <atomic>
#include <sstream>

#include "fixture.hpp"
#include "harness/concurrently.hpp"
#include "harness/fault_proxy.hpp"
#include "session/session_impl.hpp"
#include "store/redis/commands.hpp"
#include "store/redis/node.hpp"
#include "store/redis/scripts.hpp"

// Commands that were delayed on their way until no caller waits for them any more.
namespace {

using namespace std::chrono_literals;
using namespace holdfast::store;
using harness::eventually;
using harness::relay;
using harness::way;
using redis_test::contains;
namespace redis = holdfast::store::redis;

const owner_id ours{7, 1}, theirs{7, 2};

permits_command command(permits_verb verb, const owner_id& owner = ours) {
  permits_command c;
  c.verb = verb;
  c.owner = owner;
  c.kind = kind::mutex;
  c.lease_us = c.queue_lease_us = 60'000'000;
  c.peer = "nobody";
  c.note = "h 1 p";
  return c;
}

std::string bytes_of(const permits_command& c) {
  std::string bytes;
  redis::append_permits(bytes, {"holdfast"}, "m", c);
  return bytes;
}

/// A server, and connections to it on which the test chooses the last argument.
class redis_late_commands : public testing::Test {
 protected:
  redis_late_commands() {
    options_ =
        redis::read_options(*holdfast::base::parse_url("redis+unix://" + server_.socket())).value();
    connection_ = std::move(redis::greet(options_, redis::purpose::commands)).value();
  }
  /// The server's time.
  std::int64_t now() { return redis::read_server_time(say({"TIME"})).value(); }
  redis::resp_value say(std::initializer_list<std::string_view> words) {
    std::string bytes;
    redis::append_command(bytes, words);
    return run(bytes);
  }
  redis::resp_value run(const std::string& bytes) {
    return redis::exchange(*connection_, bytes, 1, {holdfast::boot_clock::now() + 60s})
        .value()
        .front();
  }
  redis::resp_value carry_out(const permits_command& c, const std::string& last_word) {
    auto bytes = bytes_of(c);
    bytes += "$" + std::to_string(last_word.size()) + "\r\n" + last_word + "\r\n";
    return run(bytes);
  }
  std::string in(std::chrono::microseconds d) { return std::to_string(now() + d.count()); }
  permits_outcome outcome(const permits_command& c, const std::string& last_word) {
    return redis::read_permits(carry_out(c, last_word), c.verb, c.lease_us).value().outcome;
  }
  redis::resp_value say_to_latch(const std::string& last_word, countdown_verb verb) {
    countdown_command c;
    c.verb = verb;
    c.owner = ours;
    c.count = 2;
    c.drop = 1;
    c.keep_us = c.queue_lease_us = 60'000'000;
    std::string bytes;
    redis::append_countdown(bytes, {"holdfast"}, "m", c);
    return run(bytes + "$" + std::to_string(last_word.size()) + "\r\n" + last_word + "\r\n");
  }
  void arrive(const std::string& last_word, countdown_verb verb = countdown_verb::arrive) {
    const auto said = say_to_latch(last_word, verb);
    ASSERT_FALSE(said.is_error()) << said.text;
  }
  void expect_too_late(const permits_command& c, const std::string& last_word) {
    const auto before = server_.ask({"GET", "holdfast:{m}"});
    const auto said = carry_out(c, last_word);
    EXPECT_TRUE(said.is_error() && said.text.starts_with("HOLDFAST_LATE ")) << said.text;
    EXPECT_EQ(server_.ask({"GET", "holdfast:{m}"}), before) << "and it has changed something";
  }

  harness::redis_server server_;
  redis::redis_options options_;
  std::unique_ptr<redis::connection> connection_;
};

TEST_F(redis_late_commands, late_grants_and_evictions_are_refused_and_releases_are_not) {
  expect_too_late(command(permits_verb::acquire), in(-1ms));
  EXPECT_EQ(server_.ask({"GET", "holdfast:{m}"}), "nil");
  ASSERT_EQ(outcome(command(permits_verb::acquire), in(60s)), permits_outcome::granted);
  for (const auto verb : {permits_verb::acquire, permits_verb::renew, permits_verb::resize,
                          permits_verb::evict, permits_verb::notify}) {
    expect_too_late(command(verb), in(-1ms));
  }
  auto waits = command(permits_verb::acquire, theirs);
  waits.wait = true;
  expect_too_late(waits, in(-1ms));
  EXPECT_EQ(outcome(command(permits_verb::inspect), in(-1ms)), permits_outcome::done);
  EXPECT_EQ(outcome(command(permits_verb::release), in(-1ms)), permits_outcome::done);
}

TEST_F(redis_late_commands, a_release_makes_pending_commands_late_for_good) {
  const auto due = in(60s), later = in(120s);
  ASSERT_EQ(outcome(command(permits_verb::acquire), later), permits_outcome::granted);
  ASSERT_EQ(outcome(command(permits_verb::release), later + " " + due), permits_outcome::done);
  expect_too_late(command(permits_verb::acquire), due);
  // Also after others have had the lock meanwhile, and for an earlier time limit.
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(outcome(command(permits_verb::acquire, theirs), later), permits_outcome::granted);
    expect_too_late(command(permits_verb::acquire), in(30s));
    ASSERT_EQ(outcome(command(permits_verb::release, theirs), later), permits_outcome::done);
    expect_too_late(command(permits_verb::acquire), due);
  }
}

TEST_F(redis_late_commands, a_release_also_stops_a_command_that_has_not_arrived) {
  const auto due = in(60s);
  ASSERT_EQ(outcome(command(permits_verb::release), in(120s) + " " + due), permits_outcome::absent);
  expect_too_late(command(permits_verb::acquire), due);
  auto s = holdfast::open(server_.url());
  EXPECT_TRUE(s.names().empty()) << "it is free";
  EXPECT_TRUE(holdfast::mutex(s, "m").try_lock()) << "the lock is free for a new request";
}

TEST_F(redis_late_commands, a_free_name_with_a_late_mark_can_become_any_kind) {
  const auto mark = [&](const std::string& key) {
    server_.ask({"SET", key, "hf1 after " + in(60s) + " mutex 0 0 0 0 0 0 0", "PX", "60000"});
  };
  auto s = holdfast::open(server_.url());
  mark("holdfast:{l}");
  holdfast::latch l{s, "l", 1};
  l.count_down();
  EXPECT_TRUE(l.try_wait());
  mark("holdfast:{r}");
  EXPECT_TRUE(holdfast::rate_limiter(s, "r", {{.tokens = 5}}).try_take());
  mark("holdfast:{s}");
  EXPECT_TRUE(holdfast::semaphore(s, "s", 3).try_acquire(2));
  l.remove();
}

TEST_F(redis_late_commands, a_latch_or_a_limiter_keeps_the_late_mark_of_its_name) {
  const auto due = in(60s), later = in(120s);
  const auto forget_and_mark = [&] {
    server_.ask({"DEL", "holdfast:{m}"});
    ASSERT_EQ(outcome(command(permits_verb::release), later + " " + due), permits_outcome::absent);
  };
  forget_and_mark();
  arrive(later);
  EXPECT_TRUE(contains(server_.ask({"GET", "holdfast:{m}"}), " latch "));
  arrive(later, countdown_verb::remove);
  expect_too_late(command(permits_verb::acquire), due);
  forget_and_mark();
  auto s = holdfast::open(server_.url());
  EXPECT_TRUE(holdfast::rate_limiter(s, "m", {{.tokens = 5, .per = 1s}}).try_take());
  EXPECT_TRUE(contains(server_.ask({"GET", "holdfast:{m}"}), " rate_limiter "));
  expect_too_late(command(permits_verb::acquire), due);
  EXPECT_GT(std::stol(server_.ask({"PTTL", "holdfast:{m}"})), 30'000);
}

TEST_F(redis_late_commands, a_release_during_a_latch_makes_commands_after_the_latch_late) {
  const auto due = in(60s), later = in(120s);
  arrive(later);
  ASSERT_EQ(outcome(command(permits_verb::release), later + " " + due), permits_outcome::absent);
  arrive(later, countdown_verb::remove);
  expect_too_late(command(permits_verb::acquire), due);
}

TEST_F(redis_late_commands, a_full_server_remembers_the_late_mark_too) {
  const auto due = in(60s), later = in(120s);
  ASSERT_EQ(outcome(command(permits_verb::acquire), later), permits_outcome::granted);
  server_.ask({"CONFIG", "SET", "maxmemory", "1"});
  ASSERT_EQ(outcome(command(permits_verb::release), later + " " + due), permits_outcome::done);
  server_.ask({"CONFIG", "SET", "maxmemory", "0"});
  expect_too_late(command(permits_verb::acquire), due);
}

TEST_F(redis_late_commands, arrivals_at_a_latch_are_refused_too) {
  const auto said = say_to_latch(in(-1ms), countdown_verb::arrive);
  EXPECT_TRUE(said.is_error() && said.text.starts_with("HOLDFAST_LATE ")) << said.text;
  EXPECT_EQ(server_.ask({"GET", "holdfast:{m}"}), "nil");
}

// Its copy was sent over another connection, and counted; then the latch was removed and made
// again.
TEST_F(redis_late_commands, a_pending_arrival_is_late_for_the_next_latch_too) {
  const auto due = in(60s), later = in(120s);
  arrive(later + " " + due);
  arrive(later, countdown_verb::remove);
  arrive(later, countdown_verb::wait);
  const auto said = say_to_latch(due, countdown_verb::arrive);
  EXPECT_TRUE(said.is_error() && said.text.starts_with("HOLDFAST_LATE ")) << said.text;
  EXPECT_TRUE(contains(server_.ask({"GET", "holdfast:{m}"}), " latch 2 2 "));
}

/// A server behind a proxy that delays the bytes of a node's first connections.
class redis_behind_a_proxy : public testing::Test {
 protected:
  std::unique_ptr<redis::node> node(std::chrono::milliseconds command_timeout, int by_proxy) {
    redis::redis_options o;
    o.command_timeout = command_timeout;
    o.locate = [this, left = std::make_shared<int>(by_proxy)](
                   holdfast::boot_time, int) -> holdfast::result<redis::address> {
      const int port = (*left)-- > 0 ? proxy_.port() : server_.port();
      return redis::address{"127.0.0.1", static_cast<std::uint16_t>(port)};
    };
    return std::make_unique<redis::node>(std::move(o));
  }
  holdfast::result<redis::node::answer> ask(redis::node& n, const permits_command& c) {
    const auto bytes = bytes_of(c);
    const redis::message one{.bytes = bytes, .stamped = true};
    return n.ask({&one, 1}, false);
  }
  long calls() {
    return std::stol(server_.field({"INFO", "commandstats"}, "cmdstat_evalsha").substr(6));
  }
  bool is_held() { return contains(server_.ask({"GET", "holdfast:{m}"}), " mutex 1 "); }

  harness::redis_server server_;
  harness::fault_proxy proxy_{server_.port()};
};

TEST_F(redis_behind_a_proxy, an_acquire_kept_back_until_after_the_release_takes_nothing) {
  auto slow = node(100ms, 1), direct = node(60s, 0);
  ASSERT_TRUE(slow->open());
  ASSERT_TRUE(ask(*direct, command(permits_verb::inspect)));
  const auto before = calls();
  proxy_.with([](relay& r) { r.stall(way::up); });
  auto given_up = ask(*slow, command(permits_verb::acquire));
  ASSERT_FALSE(given_up);
  EXPECT_TRUE(given_up.error().outcome_unknown);
  ASSERT_TRUE(ask(*direct, command(permits_verb::release)));
  proxy_.heal();
  eventually("what was kept back", [&] { return calls() == before + 2; });
  EXPECT_FALSE(is_held()) << "by nobody who knows of it";
}

TEST_F(redis_behind_a_proxy, an_acquire_of_a_broken_connection_takes_nothing_after_its_retry) {
  std::atomic<int> failed{0};
  redis::link::listener then = [&](auto answer) { failed += answer ? 0 : 1; };
  auto one = node(60s, 1);
  ASSERT_TRUE(one->open());
  ASSERT_TRUE(ask(*one, command(permits_verb::inspect)));
  const auto before = calls();
  proxy_.with([](relay& r) { r.stall(way::up); });
  const auto bytes = bytes_of(command(permits_verb::acquire));
  ASSERT_TRUE(one->post({.bytes = bytes, .stamped = true}, then));
  one->connection().renew_connection({holdfast::errc::unavailable, "it broke"}, 1);
  ASSERT_TRUE(ask(*one, command(permits_verb::acquire)));  // over another connection
  EXPECT_TRUE(is_held());
  ASSERT_TRUE(ask(*one, command(permits_verb::release)));
  proxy_.heal();
  eventually("what was kept back", [&] { return calls() == before + 3; });
  EXPECT_EQ(failed, 1);
  EXPECT_FALSE(is_held()) << "by nobody who knows of it";
}

TEST_F(redis_behind_a_proxy, an_answer_reports_that_an_earlier_attempt_may_have_been_carried_out) {
  auto s =
      holdfast::open("redis://127.0.0.1:" + std::to_string(proxy_.port()) + "?command_timeout=60s");
  const auto asks = command(permits_verb::acquire);
  ASSERT_FALSE(s.impl()->permits("m", asks).value().repeated);
  const auto before = calls();
  proxy_.with([](relay& r) { r.stall(way::down); });
  auto answer = harness::concurrently([&] { return s.impl()->permits("m", asks); });
  eventually("the first attempt", [&] { return calls() == before + 1; });
  proxy_.with([](relay& r) { r.cut(), r.heal(); });
  EXPECT_TRUE(answer.get().value().repeated);
}

TEST_F(redis_behind_a_proxy, a_request_in_time_is_not_refused_though_the_clock_was_set) {
  auto s = holdfast::open(server_.url("?command_timeout=60s"));
  holdfast::mutex m{s, "m"};
  EXPECT_TRUE(m.try_lock());
  m.unlock();
  // The clock was set: the first command contains another time, and is corrected.
  server_.shift_clock(1h);
  EXPECT_TRUE(m.try_lock());
  m.unlock();
  server_.shift_clock(0h);
  EXPECT_TRUE(m.try_lock());
  m.unlock();
  server_.shift_clock(1h);
  holdfast::latch l{s, "l", 1};
  l.count_down();
  l.remove();
}

TEST_F(redis_behind_a_proxy, only_the_answer_of_a_script_tells_the_time_of_the_server) {
  auto one = node(60s, 0);
  ASSERT_TRUE(one->open());
  ASSERT_TRUE(ask(*one, command(permits_verb::inspect)));
  const auto before = calls();
  const std::string as_in_2001 = "somebody 1000000000000000";
  server_.ask({"SET", "foreign", as_in_2001});
  std::string look;
  redis::append_command(look, {"GET", "foreign"});
  ASSERT_EQ((*one->ask(look)).replies.front().text, as_in_2001);
  ASSERT_TRUE(ask(*one, command(permits_verb::acquire)));
  EXPECT_EQ(calls(), before + 1) << "it came too late by a time that somebody had written";
}

// The next connection may lead to a server with another clock: that of a replica that took over.
TEST_F(redis_behind_a_proxy, the_time_of_a_closed_connection_does_not_count_for_the_next) {
  const redis::redis_options o =
      redis::read_options(*holdfast::base::parse_url("redis+unix://" + server_.socket())).value();
  redis::link link{o};
  const auto bytes = bytes_of(command(permits_verb::acquire));
  const auto acquire = [&] {
    const redis::message one{.bytes = bytes, .stamped = true};
    return link.ask({&one, 1}, holdfast::boot_clock::now() + 60s).value();
  };
  constexpr std::int64_t in_2001 = 1'000'000'000'000'000;
  ASSERT_TRUE(link.open());
  std::string load;
  redis::append_command(load, {"SCRIPT", "LOAD", redis::permits_script().text});
  const redis::message scripts{load};
  const auto gone = link.ask({&scripts, 1}, holdfast::boot_clock::now() + 60s).value().over;
  link.renew_connection({holdfast::errc::unavailable, "it broke"}, gone);
  const auto over = acquire().over;
  EXPECT_NE(gone, over);
  link.saw_time(in_2001, gone);
  EXPECT_FALSE(acquire().replies.front().is_error());
  link.saw_time(in_2001, over);
  EXPECT_TRUE(acquire().replies.front().is_error()) << "too late by its own clock";
}

TEST_F(redis_behind_a_proxy, a_session_with_a_shorter_timeout_than_earlier_commands_is_served) {
  auto patient = node(60s, 1);
  ASSERT_TRUE(patient->open());
  proxy_.with([](relay& r) { r.stall(way::up); });
  const auto bytes = bytes_of(command(permits_verb::acquire));
  redis::link::listener then = [](auto) {};
  ASSERT_TRUE(patient->post({.bytes = bytes, .stamped = true}, then));
  patient->connection().renew_connection({holdfast::errc::unavailable, "it broke"}, 1);
  ASSERT_TRUE(ask(*patient, command(permits_verb::release)));
  auto s = holdfast::open(server_.url("?command_timeout=30s"));
  holdfast::mutex m{s, "m"};
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  }
}

}  // namespace
