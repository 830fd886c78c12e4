#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <thread>

#include "fixture.hpp"
#include "harness/hung_store.hpp"
#include "harness/redis_fleet.hpp"
#include "session/session_impl.hpp"

// ack=majority and ack=all: a grant is valid when the replicas have it.
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using redis_test::contains;
using redis_test::outcome_of;

class redis_acknowledged : public testing::Test {
 protected:
  holdfast::session open(const std::string& ack, std::chrono::milliseconds patience = 1min) {
    holdfast::session_options o;
    o.store_timeout = patience;
    return holdfast::open(servers_.primary().url("?ack_timeout=300ms&ack=" + ack +
                                                 (ack == "any" ? "" : "&replicas=2")),
                          o);
  }
  void stop_replicas() {
    for (std::size_t i = 0; i < 2; ++i) servers_.replica(i).stop();
  }
  void resume_replicas() {
    for (std::size_t i = 0; i < 2; ++i) servers_.replica(i).resume();
  }
  harness::redis_replicas servers_;
};

TEST_F(redis_acknowledged, all_replicas_have_each_granted_lock) {
  auto s = open("all");
  holdfast::mutex m{s, "m"};
  for (int i = 0; i < 20; ++i) {
    m.lock();
    for (std::size_t r = 0; r < 2; ++r) {
      EXPECT_TRUE(contains(servers_.replica(r).ask({"GET", "holdfast:{m}"}), "hf1 mutex 1 "));
    }
    m.unlock();
  }
}

TEST_F(redis_acknowledged, a_lock_without_enough_replicas_is_not_granted_and_not_kept) {
  auto s = open("majority");
  holdfast::mutex m{s, "m"};
  m.lock(), m.unlock();
  stop_replicas();
  const auto refused = outcome_of([&] { (void)m.try_lock(); });
  EXPECT_EQ(refused.reason, errc::unavailable) << refused.text;
  EXPECT_TRUE(refused.retryable);
  EXPECT_TRUE(contains(refused.text, "0 replicas acknowledged")) << refused.text;
  EXPECT_TRUE(contains(refused.text, "asks for 1")) << refused.text;
  EXPECT_TRUE(contains(refused.text, "given back")) << refused.text;
  EXPECT_TRUE(s.show("m").holders.empty());
  resume_replicas();
  EXPECT_TRUE(m.try_lock_for(10s));
  m.unlock();
}

TEST_F(redis_acknowledged, calls_end_at_their_limit_while_the_replicas_hang) {
  const std::string url = servers_.primary().url("?ack=all&replicas=2&command_timeout=3600s");
  harness::calls_end_at_their_limit_while_it_hangs(
      {[this] { stop_replicas(); }, [this] { resume_replicas(); }}, url + "&ack_timeout=3599s",
      url);
}

TEST_F(redis_acknowledged, tries_time_out_while_the_replicas_hang) {
  harness::hang replicas{[this] { stop_replicas(); }, [this] { resume_replicas(); }};
  replicas.only_replicas = true;
  harness::tries_time_out_while_it_hangs(
      replicas,
      servers_.primary().url("?ack=all&replicas=2&ack_timeout=200ms&command_timeout=300ms"));
}

TEST_F(redis_acknowledged, a_failure_reports_whether_the_lock_may_be_held) {
  auto s = open("majority");
  holdfast::mutex m{s, "m"};
  m.lock(), m.unlock();
  stop_replicas();
  try {
    (void)m.try_acquire();
    ADD_FAILURE() << "it was granted";
  } catch (const holdfast::error& e) {
    EXPECT_FALSE(e.outcome_unknown()) << e.what();
  }
  resume_replicas();
}

TEST_F(redis_acknowledged, a_majority_goes_on_without_one_replica_and_all_does_not) {
  auto most = open("majority"), every = open("all");
  holdfast::mutex a{most, "a"}, b{every, "b"};
  b.lock(), b.unlock();
  servers_.replica(0).stop();
  EXPECT_TRUE(a.try_lock_for(1min));
  const auto refused = outcome_of([&] { (void)b.try_lock(); });
  EXPECT_EQ(refused.reason, errc::unavailable);
  EXPECT_TRUE(contains(refused.text, "1 replicas acknowledged")) << refused.text;
  EXPECT_TRUE(contains(refused.text, "asks for 2")) << refused.text;
  servers_.replica(0).resume();
  a.unlock();
}

TEST_F(redis_acknowledged, a_removed_replica_still_counts) {
  auto s = open("all");
  holdfast::mutex m{s, "m"};
  m.lock(), m.unlock();
  servers_.replica(0).kill();
  harness::eventually("the primary to see it", [&] {
    return contains(servers_.primary().ask({"INFO", "replication"}), "connected_slaves:1");
  });
  for (int i = 0; i < 2; ++i) {  // the answer to the first one shows that there is a replica
    const auto refused = outcome_of([&] { (void)m.try_lock(); });
    EXPECT_TRUE(contains(refused.text, "asks for 2")) << refused.text;
  }
}

TEST_F(redis_acknowledged, a_lock_that_was_handed_over_waits_for_the_replicas_too) {
  auto a = open("any"), b = open("all", 1s);
  holdfast::mutex first{a, "m"}, second{b, "m"};
  ASSERT_TRUE(holdfast::mutex(b, "other").try_acquire_for(1min));
  first.lock();
  redis_test::outcome refused;
  std::thread waiter([&] { refused = outcome_of([&] { second.lock(); }); });
  harness::eventually("a waiter", [&] { return a.show("m").waiters.size() == 1; });
  stop_replicas();
  first.unlock();
  waiter.join();
  resume_replicas();
  EXPECT_EQ(refused.reason, errc::unavailable) << "it was told that it has the lock";
  EXPECT_TRUE(contains(refused.text, "acknowledged")) << refused.text;
}

TEST_F(redis_acknowledged,
       a_release_for_the_next_in_the_local_queue_does_not_fail_because_of_the_replicas) {
  auto s = open("all", 1s);
  holdfast::mutex m{s, "m", {.local_time = 0us}};
  auto held = m.try_acquire_for(1min).value();
  redis_test::outcome refused;
  std::thread next([&] { refused = outcome_of([&] { m.lock(); }); });
  const auto local_queue = s.impl()->local_queue_of("m");
  harness::eventually("one at the gate", [&] { return local_queue->waiting() == 1; });
  stop_replicas();
  EXPECT_FALSE(held.release());
  next.join();
  resume_replicas();
  EXPECT_EQ(refused.reason, errc::unavailable) << refused.text;
}

TEST_F(redis_acknowledged, releases_that_are_sent_together_ask_for_no_acknowledgement) {
  auto s = open("all");
  holdfast::mutex one{s, "{m}1"}, two{s, "{m}2"};
  auto held = holdfast::multi_lock{one, two}.acquire();
  const auto waits = [&] {
    return servers_.primary().field({"INFO", "commandstats"}, "cmdstat_wait");
  };
  const auto before = waits();
  EXPECT_FALSE(held.release());
  EXPECT_EQ(waits(), before);
}

TEST_F(redis_acknowledged, a_hand_over_in_the_process_needs_no_acknowledgement) {
  auto s = open("all");
  holdfast::mutex m{s, "m", {.local_time = 1h}};
  auto held = m.acquire();
  std::optional<holdfast::lease> passed;
  std::thread next([&] { passed = m.try_acquire_for(1min); });
  const auto local_queue = s.impl()->local_queue_of("m");
  harness::eventually("one at the gate", [&] { return local_queue->waiting() == 1; });
  stop_replicas();
  const auto operations = s.store_operations();
  const auto fence = held.fence();
  EXPECT_FALSE(held.release());
  next.join();
  ASSERT_TRUE(passed);
  EXPECT_GT(passed->fence(), fence);
  EXPECT_EQ(s.store_operations(), operations);
  resume_replicas();
}

TEST_F(redis_acknowledged, a_waiter_for_a_contended_name_without_deadline_gives_up_too) {
  auto a = open("all", 1s), b = open("all", 1s);
  holdfast::mutex first{a, "m"}, second{b, "m"};
  for (auto* const one : {&first, &second}) ASSERT_TRUE(one->try_acquire_for(1min));
  stop_replicas();
  // Each gets an invalid grant, releases it to the other, and is queued again.
  std::array<redis_test::outcome, 2> refused;
  std::thread one([&] { refused[0] = outcome_of([&] { first.lock(); }); });
  std::thread two([&] { refused[1] = outcome_of([&] { second.lock(); }); });
  one.join();
  two.join();
  resume_replicas();
  // Or the last command came too late, if this process was suspended.
  for (const auto& r : refused) {
    EXPECT_TRUE(contains(r.text, "acknowledged") || contains(r.text, "HOLDFAST_LATE")) << r.text;
  }
}

TEST_F(redis_acknowledged, a_renewal_that_no_replica_has_does_not_count) {
  auto s = open("majority");
  holdfast::mutex m{s, "m"};
  auto held = m.acquire();
  stop_replicas();
  const auto refused = outcome_of([&] { held.extend(); });
  EXPECT_EQ(refused.reason, errc::unavailable);
  EXPECT_TRUE(contains(refused.text, "0 replicas acknowledged")) << refused.text;
  EXPECT_EQ(held.state(), holdfast::lease_state::suspect);
  resume_replicas();
  harness::eventually("a renewal that counts",
                      [&] { return !outcome_of([&] { held.extend(); }).failed; });
  EXPECT_EQ(held.state(), holdfast::lease_state::held);
}

TEST_F(redis_acknowledged, an_arrival_at_a_latch_waits_for_the_replicas) {
  auto s = open("majority", 1s);
  holdfast::latch l{s, "l", 2};
  l.count_down();
  stop_replicas();
  const auto refused = outcome_of([&] { l.count_down(); });
  EXPECT_EQ(refused.reason, errc::unavailable) << refused.text;
  resume_replicas();
}

TEST_F(redis_acknowledged, a_queue_entry_needs_no_replica) {
  auto other = open("any");
  holdfast::mutex m{other, "m"};
  const holdfast::lease held = m.acquire();
  auto s = open("majority", 1s);
  holdfast::store::permits_command c;
  c.verb = holdfast::store::permits_verb::acquire;
  c.owner = s.impl()->new_owner();
  c.wait = true;
  c.lease_us = c.queue_lease_us = 60'000'000;
  c.peer = s.impl()->peer();
  const holdfast::store::named_command waits{"m", c};
  stop_replicas();
  const auto together = s.impl()->acquire_together({&waits, 1});
  ASSERT_TRUE(together) << together.error().what;
  EXPECT_EQ(together->back().outcome, holdfast::store::permits_outcome::queued);
  const auto admitted = s.impl()->admit(waits, "l", {});
  ASSERT_TRUE(admitted) << admitted.error().what;
  EXPECT_EQ(admitted->permits.outcome, holdfast::store::permits_outcome::queued);
  EXPECT_EQ(other.show("m").waiters.size(), 1U);
  resume_replicas();
}

TEST_F(redis_acknowledged, a_queue_entry_is_removed_with_an_unacknowledged_lock_before_it) {
  auto other = open("any");
  holdfast::mutex b{other, "b"};
  const holdfast::lease held = b.acquire();
  auto s = open("majority", 1s);
  holdfast::store::permits_command c;
  c.verb = holdfast::store::permits_verb::acquire;
  c.wait = true;
  c.lease_us = c.queue_lease_us = 60'000'000;
  c.peer = s.impl()->peer();
  std::array<holdfast::store::named_command, 2> all{{{"a", c}, {"b", c}}};
  for (auto& one : all) one.command.owner = s.impl()->new_owner();
  stop_replicas();
  EXPECT_FALSE(s.impl()->acquire_together(all));
  EXPECT_TRUE(other.show("a").holders.empty());
  EXPECT_TRUE(other.show("b").waiters.empty());
  resume_replicas();
}

// Redis 7.2 and later let a connection wait for replicas only after it has written.
TEST_F(redis_acknowledged, an_arrival_that_is_repeated_is_a_write_as_well) {
  auto s = open("majority");
  holdfast::store::countdown_command c;
  c.verb = holdfast::store::countdown_verb::arrive;
  c.owner = s.impl()->new_owner();
  c.count = 2;
  c.drop = 1;
  c.keep_us = c.repeats_us = 60'000'000;
  const auto written = [&] {
    const std::string text = servers_.primary().ask({"INFO", "persistence"});
    const std::string_view field = "rdb_changes_since_last_save:";
    return std::stoull(text.substr(text.find(field) + field.size()));
  };
  ASSERT_EQ(s.impl()->countdown("l", c).value().remaining, 1U);
  const auto once = written();
  ASSERT_EQ(s.impl()->countdown("l", c).value().remaining, 1U);
  EXPECT_GT(written(), once);
}

TEST_F(redis_acknowledged, absent_replicas_cost_many_threads_no_more_than_one) {
  auto s = open("majority");
  {
    auto seen = holdfast::mutex(s, "m").acquire();
  }
  stop_replicas();
  constexpr int threads = 32;  // each by itself: longer than the command time-out in total
  std::atomic<int> told{0};
  std::vector<std::thread> crew;
  for (int t = 0; t < threads; ++t) {
    crew.emplace_back([&, t] {
      holdfast::mutex m{s, "own" + std::to_string(t)};
      const auto refused = outcome_of([&] { (void)m.try_lock(); });
      if (contains(refused.text, "0 replicas acknowledged")) ++told;
    });
  }
  for (auto& t : crew) t.join();
  resume_replicas();
  EXPECT_EQ(told, threads) << "some were told something else: that the server does not answer";
}

TEST(redis_with_three_replicas, a_majority_is_more_than_half_of_all_four) {
  const harness::redis_replicas servers(3);
  auto s = holdfast::open(servers.primary().url("?ack=majority&replicas=3&ack_timeout=1s"));
  holdfast::mutex m{s, "m"};
  m.lock(), m.unlock();
  servers.replica(0).stop();
  EXPECT_TRUE(m.try_lock_for(1min));
  m.unlock();
  servers.replica(1).stop();
  const auto refused = outcome_of([&] { (void)m.try_lock(); });
  EXPECT_TRUE(contains(refused.text, "1 replicas acknowledged")) << refused.text;
  EXPECT_TRUE(contains(refused.text, "asks for 2")) << refused.text;
  for (std::size_t i = 0; i < 2; ++i) servers.replica(i).resume();
}

// A session that was opened there never saw the others.
TEST(redis_split, on_the_small_side_a_new_session_gets_no_grants) {
  const harness::redis_replicas servers(4);
  for (std::size_t i = 1; i < 4; ++i) {
    servers.replica(i).ask({"REPLICAOF", "127.0.0.1", std::to_string(harness::free_port())});
  }
  harness::eventually("one that is left", [&] {
    return contains(servers.primary().ask({"INFO", "replication"}), "connected_slaves:1");
  });
  for (const std::string ack : {"majority&replicas=4", "all&replicas=4", "2"}) {
    auto s = holdfast::open(servers.primary().url("?ack_timeout=100ms&ack=" + ack));
    const auto refused = outcome_of([&] { (void)holdfast::mutex(s, "m").try_lock(); });
    EXPECT_EQ(refused.reason, errc::unavailable) << ack;
    EXPECT_TRUE(contains(refused.text, "1 replicas acknowledged")) << refused.text;
  }
}

TEST(redis_without_replicas, a_lock_is_never_acknowledged) {
  const harness::redis_server server;
  auto s = holdfast::open(server.url("?ack=1&ack_timeout=50ms"));
  const auto refused = outcome_of([&] { (void)holdfast::mutex(s, "m").try_lock(); });
  EXPECT_EQ(refused.reason, errc::unavailable);
  EXPECT_TRUE(contains(refused.text, "asks for 1")) << refused.text;
}

TEST(redis_without_replicas, a_server_that_does_not_count_them_is_quoted) {
  const harness::redis_server server({"--rename-command", "WAIT", ""});
  auto s = holdfast::open(server.url("?ack=1&ack_timeout=50ms"));
  const auto refused = outcome_of([&] { (void)holdfast::mutex(s, "m").try_lock(); });
  EXPECT_EQ(refused.reason, errc::unavailable) << refused.text;
  EXPECT_TRUE(contains(refused.text, "unknown command 'WAIT'")) << refused.text;
  EXPECT_TRUE(contains(refused.text, "given back")) << refused.text;
}

TEST(redis_without_replicas, a_user_that_may_not_see_replicas_learns_the_missing_right) {
  const harness::redis_server server;
  server.ask({"ACL", "SETUSER", "limited", "on", ">x", "~*", "&*", "+@all", "-wait"});
  auto s =
      holdfast::open("redis://limited:x@127.0.0.1:" + std::to_string(server.port()) + "?ack=1");
  const auto refused = outcome_of([&] { (void)holdfast::mutex(s, "m").try_lock(); });
  EXPECT_EQ(refused.reason, errc::not_permitted) << refused.text;
  EXPECT_TRUE(contains(refused.text, "wait")) << refused.text;
}

}  // namespace
