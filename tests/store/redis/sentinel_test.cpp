#include <cstdlib>
#include <thread>

#include "crew.hpp"
#include "fixture.hpp"
#include "harness/fake_redis.hpp"
#include "harness/hung_store.hpp"
#include "harness/redis_fleet.hpp"

// A primary that sentinels watch, and replace.
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using redis_test::contains;
using redis_test::outcome_of;

redis_test::outcome opening(const std::string& url) { return harness::outcome_of_opening(url); }

class redis_sentinels : public testing::Test {
 protected:
  harness::hang all_servers_hang() {
    const auto each = [this](void (harness::redis_server::*act)()) {
      for (const auto& server : fleet_.servers().servers()) (*server.*act)();
    };
    return {[=] { each(&harness::redis_server::stop); },
            [=] { each(&harness::redis_server::resume); }};
  }

  harness::redis_sentinels fleet_{500};
};

TEST_F(redis_sentinels, a_single_sentinel_that_answers_is_enough) {
  fleet_.sentinel(0).kill();
  fleet_.sentinel(1).stop();
  auto s = holdfast::open(fleet_.url());
  EXPECT_TRUE(holdfast::mutex(s, "m").try_lock());
  EXPECT_TRUE(contains(s.url(), "/locks")) << s.url();
  fleet_.sentinel(1).resume();
}

TEST_F(redis_sentinels, a_primary_that_is_not_found_is_reported_with_the_servers_asked) {
  const std::string one = "redis+sentinel://127.0.0.1:" + std::to_string(fleet_.sentinel(0).port());
  const auto unknown = opening(one + "/other");
  EXPECT_EQ(unknown.reason, errc::unavailable);
  EXPECT_TRUE(contains(unknown.text, "'other'")) << unknown.text;
  EXPECT_TRUE(contains(unknown.text, "knows no primary of this name")) << unknown.text;
  const auto port = std::to_string(harness::free_port());
  const auto nobody = opening("redis+sentinel://127.0.0.1:" + port + "/locks");
  EXPECT_EQ(nobody.reason, errc::unavailable);
  EXPECT_TRUE(contains(nobody.text, port)) << nobody.text;
  const auto server =
      opening("redis+sentinel://127.0.0.1:" + std::to_string(fleet_.primary().port()) + "/locks");
  EXPECT_EQ(server.reason, errc::unsupported) << server.text;
  EXPECT_TRUE(contains(server.text, "unknown command")) << server.text;
  EXPECT_TRUE(contains(server.text, "no sentinel")) << server.text;
  const auto both =
      opening("redis+sentinel://127.0.0.1:" + std::to_string(fleet_.primary().port()) +
              ",127.0.0.1:" + std::to_string(fleet_.sentinel(0).port()) + "/locks");
  EXPECT_FALSE(both.failed) << both.text;
  const auto turned_round = opening("redis://" + one.substr(one.find("127.")));
  EXPECT_EQ(turned_round.reason, errc::unsupported) << turned_round.text;
  EXPECT_TRUE(contains(turned_round.text, "write redis+sentinel://")) << turned_round.text;
}

TEST_F(redis_sentinels, sentinels_with_a_login_of_their_own_get_it) {
  for (std::size_t i = 0; i < 3; ++i) {
    fleet_.sentinel(i).ask({"ACL", "SETUSER", "default", ">secret"});
  }
  const auto refused = opening(fleet_.url());
  EXPECT_EQ(refused.reason, errc::not_permitted) << refused.text;
  EXPECT_TRUE(contains(refused.text, "sentinel_password_env")) << refused.text;
  ::setenv("HOLDFAST_TEST_SENTINEL", "secret", 1);
  const auto opened = opening(fleet_.url("?sentinel_password_env=HOLDFAST_TEST_SENTINEL"));
  EXPECT_FALSE(opened.failed) << opened.text;
}

TEST_F(redis_sentinels, calls_end_at_their_limit_while_all_servers_hang) {
  const std::string url = fleet_.url("?connect_timeout=3600s&command_timeout=3600s");
  harness::calls_end_at_their_limit_while_it_hangs(all_servers_hang(), url, url);
}

TEST_F(redis_sentinels, tries_time_out_while_all_servers_hang) {
  harness::tries_time_out_while_it_hangs(
      all_servers_hang(), fleet_.url("?connect_timeout=300ms&command_timeout=300ms"));
}

TEST_F(redis_sentinels, a_former_primary_is_not_used_although_sentinels_name_it) {
  auto& named = fleet_.primary();
  const auto other = std::to_string(fleet_.servers().replica(0).port());
  EXPECT_EQ(named.ask({"REPLICAOF", "127.0.0.1", other}), "OK");
  const auto refused = opening(fleet_.url());
  EXPECT_EQ(refused.reason, errc::unavailable) << refused.text;
  EXPECT_TRUE(contains(refused.text, "it is a slave by now")) << refused.text;
}

// A sentinel that is cut off from the others names the dead primary for ever.
TEST(redis_stale_sentinel, that_names_a_dead_primary_is_passed_over) {
  using harness::fake_redis;
  const auto names = [](int port) {
    return [port](const fake_redis::words& w) {
      return w[0] == "SENTINEL"
                 ? "*2\r\n" + harness::bulk("127.0.0.1") + harness::bulk(std::to_string(port))
                 : std::string();
    };
  };
  const harness::redis_server primary;
  const fake_redis stale(names(harness::free_port())), also(names(primary.port()));
  const auto at = [](const fake_redis& s) { return "127.0.0.1:" + std::to_string(s.port()); };
  const auto both = "redis+sentinel://" + at(stale) + "," + at(stale) + "," + at(also) + "/locks";
  auto s = holdfast::open(both);
  EXPECT_TRUE(holdfast::mutex(s, "m").try_lock());
  const auto none = opening("redis+sentinel://" + at(stale) + "/locks");
  EXPECT_EQ(none.reason, errc::unavailable) << none.text;
}

TEST_F(redis_sentinels, users_with_the_documented_rights_are_enough) {
  redis_test::give_documented_rights(fleet_.primary(),
                                     {"everywhere", "behind sentinels", "with ack"});
  for (std::size_t i = 0; i < 3; ++i) {
    redis_test::give_documented_rights(fleet_.sentinel(i), {"the sentinels"});
  }
  ::setenv("HOLDFAST_TEST_ASKER", "pw", 1);
  std::string url =
      fleet_.url("?ack=2&sentinel_user=app&sentinel_password_env=HOLDFAST_TEST_ASKER");
  url.insert(url.find("//") + 2, "app:pw@");
  EXPECT_EQ(outcome_of([&] { holdfast::mutex(holdfast::open(url), "m").lock(); }).text, "");
}

TEST_F(redis_sentinels, when_the_primary_is_killed_under_load_no_waiter_is_stuck_and_fences_grow) {
  redis_test::crew crew(fleet_.url(), 4, 3, {"a", "b"});
  crew.all_go_on(20);
  fleet_.fail_over();
  crew.all_go_on(20);
  crew.stop();
  const auto t = crew.count();
  redis_test::expect_right_data(t);
  // The sentinels decide how often: those that got no processor for 2 s rest for 30.
  EXPECT_TRUE(t.failed == 0 || contains(t.failure, "the store is not available")) << t.failure;
}

// One of the replicas is primary then, so two replicas exist again only with the former primary.
TEST_F(redis_sentinels, a_lock_at_all_replicas_survives_the_death_of_the_primary_under_load) {
  redis_test::crew crew(fleet_.url("?ack=2&ack_timeout=200ms"), 4, 3, {"a", "b"});
  crew.all_go_on(20);
  auto& killed = fleet_.primary();
  fleet_.fail_over();
  killed.start();
  crew.all_go_on(5);
  crew.stop();
  redis_test::expect_one_at_a_time(crew.count());
}

TEST_F(redis_sentinels, a_waiter_gets_the_lock_in_the_end_though_the_primary_is_replaced) {
  holdfast::session_options o;
  o.lease = 1s;
  auto a = holdfast::open(fleet_.url(), o), b = holdfast::open(fleet_.url(), o);
  holdfast::mutex first{a, "m"}, second{b, "m"};
  auto held = first.acquire();
  std::uint64_t fence = 0;
  std::thread waiter([&] { fence = second.try_acquire_for(60s).value().fence(); });
  harness::eventually("a waiter", [&] { return a.show("m").waiters.size() == 1; });
  fleet_.fail_over();
  const auto before = held.fence();
  (void)held.release();
  waiter.join();
  EXPECT_GT(fence, before);
}

TEST_F(redis_sentinels, a_holder_learns_that_a_failover_lost_its_grant_and_fences_grow) {
  auto a = holdfast::open(fleet_.url()), b = holdfast::open(fleet_.url());
  holdfast::mutex first{a, "m"}, second{b, "m"};
  {
    auto before = first.acquire();
  }
  // The replicas are cut off, so further writes are on the primary alone.
  const auto nowhere = std::to_string(harness::free_port());
  for (std::size_t i = 0; i < 2; ++i) {
    fleet_.servers().replica(i).ask({"REPLICAOF", "127.0.0.1", nowhere});
  }
  auto lost = first.acquire();
  EXPECT_EQ(b.show("m").holders.size(), 1u);
  fleet_.fail_over();
  auto next = second.try_acquire_for(60s);
  ASSERT_TRUE(next);
  EXPECT_GT(next->fence(), lost.fence());
  EXPECT_EQ(outcome_of([&] { lost.extend(); }).reason, errc::lost);
  EXPECT_EQ(lost.state(), holdfast::lease_state::lost);
  EXPECT_TRUE(lost.lost().stop_requested());
  EXPECT_EQ(b.show("m").holders.size(), 1u) << "the new holder keeps it";
}

TEST_F(redis_sentinels, with_ack_a_primary_without_replicas_grants_nothing_that_could_be_lost) {
  auto s = holdfast::open(fleet_.url("?ack=majority&replicas=2&ack_timeout=200ms"));
  holdfast::mutex m{s, "m"};
  {
    auto before = m.acquire();
  }
  const auto nowhere = std::to_string(harness::free_port());
  for (std::size_t i = 0; i < 2; ++i) {
    fleet_.servers().replica(i).ask({"REPLICAOF", "127.0.0.1", nowhere});
  }
  EXPECT_EQ(outcome_of([&] { (void)m.try_lock(); }).reason, errc::unavailable);
  // Sentinel promotes no replica that has been without its primary for some seconds.
  const auto port = std::to_string(fleet_.primary().port());
  for (std::size_t i = 0; i < 2; ++i) {
    auto& replica = fleet_.servers().replica(i);
    replica.ask({"REPLICAOF", "127.0.0.1", port});
    harness::eventually("it follows again", [&] {
      return replica.field({"INFO", "replication"}, "master_link_status") == "up";
    });
  }
  fleet_.fail_over();
  EXPECT_TRUE(m.try_lock_for(60s));
  m.unlock();
}

class redis_failover_on_request : public redis_sentinels {
 protected:
  void fail_over() {
    EXPECT_EQ(fleet_.sentinel(0).ask({"SENTINEL", "FAILOVER", "locks"}), "OK");
    harness::eventually("another primary", [&] { return &fleet_.primary() != &before_; });
  }
  void until_the_old_one_is_demoted() {
    fleet_.hurry(200ms, 500ms);
    harness::eventually("the old one to be a replica",
                        [&] { return before_.field({"INFO", "replication"}, "role") == "slave"; });
    fleet_.hurry(2s, 10s);
  }
  /// Messages published at the new primary do not reach the old one.
  void fail_over_and_leave_the_old_one_alone() {
    fail_over();
    until_the_old_one_is_demoted();
    before_.ask({"REPLICAOF", "127.0.0.1", std::to_string(harness::free_port())});
  }
  bool new_primary_knows_m() {
    return contains(fleet_.primary().ask({"GET", "holdfast:{m}"}), " mutex 1 ");
  }
  harness::redis_server& before_ = fleet_.primary();
};

TEST_F(redis_failover_on_request, is_followed_when_the_old_primary_is_demoted) {
  auto s = holdfast::open(fleet_.url());
  holdfast::mutex m{s, "m"};
  m.lock(), m.unlock();
  fail_over();
  until_the_old_one_is_demoted();
  EXPECT_TRUE(m.try_lock_for(60s));
  EXPECT_TRUE(new_primary_knows_m());
  m.unlock();
}

TEST_F(redis_failover_on_request, is_followed_by_the_subscription_when_commands_go_elsewhere) {
  auto a = holdfast::open(fleet_.url()), b = holdfast::open(fleet_.url());
  EXPECT_EQ(redis_test::listening_at(before_), 2U);
  fail_over_and_leave_the_old_one_alone();
  holdfast::mutex first{a, "m"}, second{b, "m"};
  auto held = first.try_acquire_for(60s).value();
  auto next = async_acquire(second).future();
  harness::eventually("a waiter", [&] { return a.show("m").waiters.size() == 1; });
  harness::eventually("the waiter listens there",
                      [&] { return redis_test::listening_at(before_) <= 1U; });
  harness::eventually("at the new one",
                      [&] { return redis_test::listening_at(fleet_.primary()) >= 1U; });
  EXPECT_FALSE(held.release());
  EXPECT_NO_THROW((void)next.get().value().release());
}

TEST_F(redis_failover_on_request, is_followed_by_a_waiter_for_a_lock_of_redisson) {
  auto a = holdfast::open(fleet_.url("?dialect=redisson")),
       b = holdfast::open(fleet_.url("?dialect=redisson"));
  EXPECT_EQ(redis_test::listening_at(before_), 2U);
  fail_over_and_leave_the_old_one_alone();
  holdfast::mutex first{a, "m"}, second{b, "m"};
  auto held = first.try_acquire_for(60s).value();
  auto next = async_acquire(second).future();
  const std::string channel = "redisson_lock__channel:{m}";
  harness::eventually("the waiter listens at the new one", [&] {
    return fleet_.primary().ask({"PUBSUB", "NUMSUB", channel}) == channel + " 1";
  });
  EXPECT_FALSE(held.release());
  EXPECT_NO_THROW((void)next.get().value().release());
}

TEST_F(redis_failover_on_request,
       is_followed_before_that_by_a_session_that_wants_acknowledgements) {
  auto s = holdfast::open(fleet_.url("?ack=all&replicas=2&ack_timeout=100ms"));
  holdfast::mutex m{s, "m"};
  m.lock(), m.unlock();
  fail_over();
  EXPECT_EQ(before_.field({"INFO", "replication"}, "role"), "master");
  EXPECT_EQ(outcome_of([&] { (void)m.try_lock(); }).reason, errc::unavailable);
  auto fresh = holdfast::open(fleet_.url("?ack=1"));
  holdfast::mutex other{fresh, "m"};
  EXPECT_TRUE(other.try_lock_for(60s)) << "the former one gave back what it had there";
  EXPECT_TRUE(new_primary_knows_m());
  EXPECT_EQ(s.show("m").holders.size(), 1u) << "it talks to the new one";
  other.unlock();
}

}  // namespace
