#include <algorithm>
#include <functional>
#include <sstream>
#include <utility>
#include <vector>

#include "fixture.hpp"
#include "session/session_impl.hpp"

// How long the server keeps the record of a mutex with a waiter: a record that it ends early is
// lost.
namespace redis_test {
namespace {

using namespace std::chrono_literals;
using holdfast::store::kind;
using holdfast::store::permits_outcome;
using holdfast::store::permits_verb;

class script_keys : public testing::Test {
 protected:
  permits_outcome ask(permits_verb verb, std::uint64_t owner, std::chrono::microseconds lease = 60s,
                      std::chrono::microseconds place = 20s) {
    holdfast::store::permits_command c;
    c.verb = verb;
    c.owner = {1, owner};
    c.wait = true;
    c.lease_us = lease.count();
    c.queue_lease_us = place.count();
    c.peer = session_.impl()->peer();
    return session_.impl()->permits("m", c).value().outcome;
  }
  /// Sends a request of the session with that name.
  holdfast::store::permits_reply ask_as(std::string_view peer, permits_verb verb,
                                        std::uint64_t owner, kind of = kind::mutex,
                                        std::uint32_t capacity = 1, std::uint32_t weight = 0) {
    holdfast::store::permits_command c;
    c.verb = verb;
    c.owner = {1, owner};
    c.kind = of;
    c.capacity = capacity;
    c.weight = weight > 0 ? weight : capacity;
    c.wait = true;
    c.lease_us = c.queue_lease_us = 5'000'000;
    c.peer = peer;
    c.note = "h 1 p";
    return session_.impl()->permits("m", c).value();
  }
  std::vector<std::uint64_t> waiters() {
    std::vector<std::uint64_t> all;
    const auto there = ask_as("who looks", permits_verb::inspect, 0);
    for (const auto& w : there.found.queue) all.push_back(w.owner.low);
    return all;
  }
  std::chrono::milliseconds record_lasts() const {
    std::istringstream keys(server_.ask({"KEYS", "*"}));
    for (std::string key; keys >> key;) {
      if (server_.ask({"TYPE", key}) != "string") continue;
      return std::chrono::milliseconds(std::stol(server_.ask({"PTTL", key})));
    }
    return {};
  }

  harness::redis_server server_;
  const holdfast::session session_ = holdfast::open(server_.url());
};

TEST_F(script_keys, of_a_holder_last_for_its_lease_though_an_entry_of_a_waiter_ends_sooner) {
  ASSERT_EQ(ask(permits_verb::acquire, 1), permits_outcome::granted);
  ASSERT_EQ(ask(permits_verb::acquire, 2), permits_outcome::queued);
  EXPECT_GT(record_lasts(), 20s + 1s);
}

TEST_F(script_keys,
       of_a_holder_last_for_the_renewed_lease_though_an_entry_of_a_waiter_ends_sooner) {
  ASSERT_EQ(ask(permits_verb::acquire, 1), permits_outcome::granted);
  ASSERT_EQ(ask(permits_verb::acquire, 2), permits_outcome::queued);
  ASSERT_EQ(ask(permits_verb::renew, 1, 120s), permits_outcome::granted);
  EXPECT_GT(record_lasts(), 60s + 1s);
}

TEST_F(script_keys, of_a_queue_last_longer_than_the_grant_of_the_waiter_that_has_to_claim_it) {
  ASSERT_EQ(ask(permits_verb::acquire, 1), permits_outcome::granted);
  ASSERT_EQ(ask(permits_verb::acquire, 2), permits_outcome::queued);
  ASSERT_EQ(ask(permits_verb::acquire, 3), permits_outcome::queued);
  ASSERT_EQ(ask(permits_verb::acquire, 4), permits_outcome::queued);
  ASSERT_EQ(ask(permits_verb::release, 1), permits_outcome::done);
  EXPECT_GT(record_lasts(), 2s);
}

// A cache evicts single keys.
TEST_F(script_keys, that_are_made_anew_beside_others_have_a_time_to_live) {
  const std::pair<kind, std::uint32_t> all[] = {{kind::mutex, 1},
                                                {kind::election, 1},
                                                {kind::shared_mutex, 8},
                                                {kind::semaphore, 3},
                                                {kind::condition_variable, 8}};
  const std::function<void(kind, std::uint32_t)> next[] = {
      [&](kind k, std::uint32_t n) { (void)ask_as("d", permits_verb::acquire, 5, k, n); },
      [&](kind k, std::uint32_t n) { (void)ask_as("b", permits_verb::acquire, 5, k, n); },
      [&](kind k, std::uint32_t n) { (void)ask_as("c", permits_verb::acquire, 4, k, n); },
      [&](kind k, std::uint32_t n) { (void)ask_as("c", permits_verb::renew, 4, k, n); },
      [&](kind k, std::uint32_t n) { (void)ask_as("a", permits_verb::renew, 1, k, n); },
      [&](kind k, std::uint32_t n) { (void)ask_as("a", permits_verb::release, 1, k, n); },
      [&](kind k, std::uint32_t n) { (void)ask_as("x", permits_verb::notify, 0, k, n); }};
  for (const auto& [k, capacity] : all) {
    for (const char* const key : {"", ":d", ":q", ":p", ":l"}) {
      for (const auto& step : next) {
        SCOPED_TRACE(std::string(to_string(k)) + key + " " + std::to_string(&step - next));
        server_.ask({"FLUSHALL"});
        (void)ask_as("a", permits_verb::acquire, 1, k, capacity);
        (void)ask_as("b", permits_verb::acquire, 2, k, capacity);
        (void)ask_as("b", permits_verb::acquire, 3, k, capacity);
        (void)ask_as("c", permits_verb::acquire, 4, k, capacity);
        server_.ask({"DEL", std::string("holdfast:{m}") + key});
        step(k, capacity);
        EXPECT_EQ(server_.keys_for_ever(), "");
        (void)ask_as("e", permits_verb::acquire, 6, k, capacity);
        EXPECT_EQ(server_.keys_for_ever(), "");
      }
    }
  }
}

TEST_F(script_keys, of_places_are_missed_and_a_waiter_that_asks_no_more_ends) {
  const std::function<void()> next[] = {[&] { (void)ask_as("c", permits_verb::acquire, 4); },
                                        [&] { (void)ask_as("d", permits_verb::acquire, 5); },
                                        [&] { (void)ask_as("c", permits_verb::renew, 4); }};
  std::chrono::seconds ahead{};
  for (const auto& step : next) {
    SCOPED_TRACE(&step - next);
    server_.ask({"FLUSHALL"});
    ASSERT_EQ(ask(permits_verb::acquire, 1, 600s), permits_outcome::granted);
    (void)ask_as("b", permits_verb::acquire, 2);
    (void)ask_as("c", permits_verb::acquire, 4);
    server_.ask({"DEL", "holdfast:{m}:p"});
    step();
    for (int i = 0; i < 2; ++i) {
      server_.shift_clock(ahead += 3s);
      (void)ask_as("c", permits_verb::acquire, 4);
    }
    const auto left = waiters();
    EXPECT_EQ(std::count(left.begin(), left.end(), 2), 0);
    EXPECT_EQ(std::count(left.begin(), left.end(), 4), 1) << "it asked in time";
  }
}

TEST_F(script_keys, of_places_are_missed_when_only_the_holder_asks) {
  ASSERT_EQ(ask(permits_verb::acquire, 1, 600s), permits_outcome::granted);
  (void)ask_as("b", permits_verb::acquire, 2);
  (void)ask_as("c", permits_verb::acquire, 4);
  server_.ask({"DEL", "holdfast:{m}:p"});
  server_.shift_clock(6s);
  EXPECT_TRUE(waiters().empty()) << "and an inspection shows it";
  ASSERT_EQ(ask(permits_verb::renew, 1, 600s), permits_outcome::granted);
  EXPECT_TRUE(waiters().empty());
}

TEST_F(script_keys, of_the_data_are_missed_when_only_the_holder_asks) {
  ASSERT_EQ(ask(permits_verb::acquire, 1, 600s), permits_outcome::granted);
  (void)ask_as("b", permits_verb::acquire, 2);
  (void)ask_as("c", permits_verb::acquire, 4);
  server_.ask({"DEL", "holdfast:{m}:d"});
  server_.shift_clock(6s);
  ASSERT_EQ(ask(permits_verb::renew, 1, 600s), permits_outcome::granted);
  EXPECT_EQ(server_.ask({"EXISTS", "holdfast:{m}:q", "holdfast:{m}:p"}), "0");
}

// An older program makes the queue without the empty member, and removes that member from it.
TEST_F(script_keys, of_places_without_the_mark_of_a_new_key_end_no_sooner) {
  ASSERT_EQ(ask(permits_verb::acquire, 1, 600s), permits_outcome::granted);
  ASSERT_EQ(ask(permits_verb::acquire, 2, 60s, 600s), permits_outcome::queued);
  const auto ends = [&] {
    return server_.ask({"ZRANGE", "holdfast:{m}:p", "-1", "-1", "WITHSCORES"});
  };
  (void)ask_as("c", permits_verb::acquire, 3);
  const auto before = ends();
  server_.ask({"ZREM", "holdfast:{m}:p", ""});
  (void)ask_as("d", permits_verb::acquire, 4);
  EXPECT_EQ(ends(), before);
}

TEST_F(script_keys, of_a_lost_queue_cost_a_repeated_request_no_entry) {
  const std::pair<const char*, std::vector<std::uint64_t>> all[] = {{":q", {4, 2}}, {":d", {2}}};
  for (const auto& [key, asked_again] : all) {
    SCOPED_TRACE(key);
    server_.ask({"FLUSHALL"});
    (void)ask_as("a", permits_verb::acquire, 1, kind::semaphore, 3);
    (void)ask_as("b", permits_verb::acquire, 2, kind::semaphore, 3);
    (void)ask_as("c", permits_verb::acquire, 4, kind::semaphore, 3);
    server_.ask({"DEL", std::string("holdfast:{m}") + key});
    (void)ask_as("c", permits_verb::acquire, 4, kind::semaphore, 3);
    (void)ask_as("b", permits_verb::acquire, 2, kind::semaphore, 3);
    EXPECT_EQ(waiters(), asked_again);
    (void)ask_as("a", permits_verb::release, 1, kind::semaphore, 3);
    (void)ask_as("c", permits_verb::release, 4, kind::semaphore, 3);
    EXPECT_TRUE(waiters().empty());
  }
}

TEST_F(script_keys, of_holders_stay_when_the_queue_behind_them_is_lost_and_expire) {
  const auto ask_for = [&](const char* peer, permits_verb verb, std::uint64_t n, std::uint32_t w) {
    return ask_as(peer, verb, n, kind::semaphore, 3, w).outcome;
  };
  ASSERT_EQ(ask_for("a", permits_verb::acquire, 1, 2), permits_outcome::granted);
  ASSERT_EQ(ask_for("b", permits_verb::acquire, 2, 1), permits_outcome::granted);
  ASSERT_EQ(ask_for("c", permits_verb::acquire, 3, 3), permits_outcome::queued);
  server_.ask({"DEL", "holdfast:{m}:q"});
  EXPECT_EQ(ask_for("a", permits_verb::release, 1, 2), permits_outcome::done);
  EXPECT_EQ(server_.keys_for_ever(), "");
  EXPECT_EQ(ask_for("b", permits_verb::renew, 2, 1), permits_outcome::granted);
  EXPECT_EQ(ask_for("c", permits_verb::acquire, 3, 3), permits_outcome::queued);
  EXPECT_EQ(waiters(), std::vector<std::uint64_t>{3});
}

// A participant that dropped out will not ask for a place again.
TEST_F(script_keys, of_places_at_a_barrier_are_missed_and_it_begins_anew) {
  for (const std::uint64_t n : {1U, 2U})
    ASSERT_EQ(ask_as("a", permits_verb::acquire, n, kind::barrier, 3, 1).outcome,
              permits_outcome::queued);
  server_.ask({"DEL", "holdfast:{m}:p"});
  EXPECT_EQ(ask_as("a", permits_verb::renew, 1, kind::barrier, 3, 1).outcome,
            permits_outcome::absent);
}

TEST_F(script_keys, of_places_at_a_latch_are_missed_and_a_waiter_that_asks_no_more_ends) {
  const auto ask_latch = [&](holdfast::store::countdown_verb verb, std::uint64_t n) {
    holdfast::store::countdown_command c;
    c.verb = verb;
    c.owner = {1, n};
    c.count = 3;
    c.queue_lease_us = 5'000'000;
    c.keep_us = 600'000'000;
    c.peer = "a";
    return session_.impl()->countdown("m", c).value();
  };
  using enum holdfast::store::countdown_verb;
  std::chrono::seconds ahead{};
  for (const std::uint64_t next : {3U, 4U}) {
    SCOPED_TRACE(next);
    server_.ask({"FLUSHALL"});
    for (const std::uint64_t n : {2U, 3U}) (void)ask_latch(wait, n);
    server_.ask({"DEL", "holdfast:{m}:p"});
    (void)ask_latch(wait, next);
    for (int i = 0; i < 2; ++i) {
      server_.shift_clock(ahead += 3s);
      (void)ask_latch(wait, 3);
    }
    const auto left = ask_latch(inspect, 0).found.waiting;
    ASSERT_EQ(left.size(), 1U);
    EXPECT_EQ(left.front().owner.low, 3U) << "it asked in time";
  }
}

// A test of the tests: the check that every server gets at its end.
TEST(keys_for_ever, are_found_in_every_database_and_a_silent_server_is_named) {
  harness::redis_server server;
  server.ask({"EVAL", "redis.call('SELECT', '3') redis.call('SET', 'a b', 'x')", "0"});
  EXPECT_EQ(server.keys_for_ever(), "a b ");
  server.ask({"CONFIG", "SET", "requirepass", "s3cret"});
  EXPECT_TRUE(contains(server.keys_for_ever(), "NOAUTH")) << server.keys_for_ever();
  server.wants("s3cret");
  EXPECT_EQ(server.keys_for_ever(), "a b ");
  server.may_stay("a*", "this test is over");
  EXPECT_EQ(server.keys_for_ever(), "");
}

}  // namespace
}  // namespace redis_test
