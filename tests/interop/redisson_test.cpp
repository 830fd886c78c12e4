#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>
#include <thread>

#include "harness/concurrently.hpp"
#include "harness/eventually.hpp"
#include "harness/failing.hpp"
#include "harness/fault_proxy.hpp"
#include "harness/redis_server.hpp"
#include "harness/tcp.hpp"

// Redisson's read-write lock and latch, seen from the server; Redisson's own steps are written here
// as it writes them.
namespace interop_test {
namespace {

using namespace std::chrono_literals;
using harness::contains;
using harness::outcome_of;
using holdfast::errc;
using holdfast::latch;
using holdfast::lease;
using holdfast::shared_mutex;

constexpr auto java = "8743c9c0-0795-4907-87fd-6c719a6b4586:17";

class redisson : public testing::Test {
 protected:
  std::string ask(const std::vector<std::string>& words) const { return server_.ask(words); }
  holdfast::session open() const { return holdfast::open(server_.url("?dialect=redisson")); }
  static std::string entry(const std::string& owner) {
    return "{rw}:" + owner + ":rwlock_timeout:1";
  }
  void java_reads(const std::string& ms) const {
    ask({"HSET", "rw", "mode", "read", java, "1"});
    ask({"SET", entry(java), "1", "PX", ms});
    ask({"PEXPIRE", "rw", ms});
  }
  void java_writes() const {
    ask({"HSET", "rw", "mode", "write", java + std::string(":write"), "1"});
    ask({"PEXPIRE", "rw", "1000000"});
  }
  void await_listener(const std::string& channel) const {
    harness::eventually("somebody listens",
                        [&] { return ask({"PUBSUB", "NUMSUB", channel}) != channel + " 0"; });
  }
  /// Redisson's count_down.
  void java_counts_down(const std::string& key) const {
    if (ask({"DECR", key}) != "0") return;
    ask({"DEL", key});
    ask({"PUBLISH", "redisson_countdownlatch__channel__{" + key + "}", "0"});
  }

  const harness::redis_server server_;
  const holdfast::session session_ = open();
  const holdfast::session other_ = open();
  shared_mutex lock_{session_, "rw"};
  shared_mutex rival_{other_, "rw"};
};

// ---- listeners

// A release counts the listeners, and leaves them time.
TEST_F(redisson, a_session_listens_while_it_waits_and_no_longer) {
  holdfast::mutex mine(session_, "orders"), theirs(other_, "orders");
  const std::string channel = "redisson_lock__channel:{orders}";
  auto held = mine.acquire();
  auto waiting = harness::concurrently([&] { return theirs.acquire(); });
  await_listener(channel);
  held = {};
  const auto got = waiting.get();
  harness::eventually("nobody listens",
                      [&] { return ask({"PUBSUB", "NUMSUB", channel}) == channel + " 0"; });
  EXPECT_FALSE(mine.try_acquire_for(10ms));
  harness::eventually("nobody listens who gave up",
                      [&] { return ask({"PUBSUB", "NUMSUB", channel}) == channel + " 0"; });
}

// ---- the read-write lock

TEST_F(redisson, readers_hold_it_together_and_a_writer_holds_it_alone) {
  auto mine = lock_.acquire_shared();
  auto theirs = rival_.try_acquire_shared();
  ASSERT_TRUE(theirs);
  EXPECT_EQ(other_.show("rw").holders.size(), 2u);
  EXPECT_FALSE(rival_.try_acquire());
  mine = {};
  EXPECT_FALSE(lock_.try_acquire());
  theirs.reset();
  const auto writer = lock_.try_acquire();
  ASSERT_TRUE(writer);
  EXPECT_FALSE(rival_.try_acquire_shared());
  EXPECT_FALSE(rival_.try_acquire());
}

TEST_F(redisson, a_reader_is_in_the_hash_and_its_lease_in_a_key_of_its_own) {
  const auto held = lock_.acquire_shared();
  EXPECT_EQ(ask({"HGET", "rw", "mode"}), "read");
  EXPECT_EQ(ask({"HLEN", "rw"}), "2");
  const auto owner = ask({"EVAL", "return redis.call('HKEYS', KEYS[1])[2]", "1", "rw"});
  EXPECT_EQ(ask({"HGET", "rw", owner}), "1");
  EXPECT_GT(std::stoi(ask({"PTTL", entry(owner)})), 15'000);
  EXPECT_GT(std::stoi(ask({"PTTL", "rw"})), 15'000);
}

TEST_F(redisson, a_writer_is_in_the_hash_and_nothing_else_is) {
  lease held = lock_.acquire();
  EXPECT_EQ(ask({"HGET", "rw", "mode"}), "write");
  EXPECT_TRUE(
      ask({"EVAL", "return redis.call('HKEYS', KEYS[1])[2]", "1", "rw"}).ends_with(":write"));
  EXPECT_EQ(ask({"DBSIZE"}), "1");
  EXPECT_EQ(session_.show("rw").holders.at(0).short_id, held.short_id());
  EXPECT_FALSE(held.release());
  EXPECT_EQ(ask({"DBSIZE"}), "0");
}

TEST_F(redisson, a_java_reader_shares_with_our_readers_and_excludes_our_writers) {
  java_reads("1000000");
  EXPECT_FALSE(lock_.try_acquire());
  {
    const auto held = lock_.try_acquire_shared();
    ASSERT_TRUE(held);
    EXPECT_EQ(ask({"HLEN", "rw"}), "3");
  }
  EXPECT_EQ(ask({"HLEN", "rw"}), "2");
  EXPECT_EQ(ask({"HGET", "rw", java}), "1");
  EXPECT_GT(std::stoi(ask({"PTTL", "rw"})), 900'000);
}

// Their lease ended long ago, although the hash still exists: it counts for as long as its entry.
TEST_F(redisson, the_hold_of_a_dead_reader_ends_with_its_own_entry) {
  java_reads("1000000");
  auto held = lock_.acquire_shared();
  ask({"DEL", entry(java)});
  held = {};
  EXPECT_EQ(ask({"EXISTS", "rw"}), "0");
  EXPECT_TRUE(lock_.try_acquire());
}

TEST_F(redisson, our_renewal_does_not_lengthen_the_hold_of_another_reader) {
  java_reads("1000000");
  auto held = lock_.acquire_shared();
  ask({"PEXPIRE", entry(java), "5000"});
  held.extend();
  EXPECT_LE(std::stoi(ask({"PTTL", entry(java)})), 5'000);
  held = {};
  EXPECT_LE(std::stoi(ask({"PTTL", "rw"})), 5'000) << "the hash ends with the last reader";
}

TEST_F(redisson, our_waiters_listen_to_the_channel_of_a_java_writer) {
  java_writes();
  EXPECT_FALSE(lock_.try_acquire_shared());
  EXPECT_FALSE(lock_.try_acquire());
  auto reader = harness::concurrently([&] { return lock_.acquire_shared(); });
  await_listener("redisson_rwlock:{rw}");
  // Both in one script, as Redisson does it: a waiter that polls between them listens no longer.
  constexpr const char* release =
      "redis.call('DEL', KEYS[1]) return redis.call('PUBLISH', KEYS[2], ARGV[1])";
  EXPECT_EQ(ask({"EVAL", release, "2", "rw", "redisson_rwlock:{rw}", "1"}), "1");
  EXPECT_TRUE(reader.get());
}

TEST_F(redisson, a_release_publishes_the_message_of_redisson) {
  const std::string channel = "redisson_rwlock:{rw}";
  const auto message = [](const std::string& text) {
    return "*3\r\n$7\r\nmessage\r\n$20\r\nredisson_rwlock:{rw}\r\n$1\r\n" + text + "\r\n";
  };
  harness::tcp_client listener(server_.port());
  listener.say("SUBSCRIBE " + channel + "\r\n");
  await_listener(channel);
  EXPECT_FALSE(lock_.acquire().release());
  auto first = lock_.acquire_shared(), last = rival_.acquire_shared();
  EXPECT_FALSE(first.release()) << "of which they hear nothing";
  EXPECT_FALSE(last.release());
  listener.say("QUIT\r\n");
  const auto heard = listener.hear_all();
  EXPECT_TRUE(heard.ends_with(":1\r\n" + message("1") + message("0") + "+OK\r\n")) << heard;
}

TEST_F(redisson, a_downgrade_lets_no_writer_in_and_a_lone_reader_can_upgrade) {
  lock_.lock();
  lock_.downgrade();
  EXPECT_EQ(ask({"HGET", "rw", "mode"}), "read");
  auto beside = rival_.try_acquire_shared();
  EXPECT_TRUE(beside);
  EXPECT_FALSE(lock_.try_upgrade());
  beside.reset();
  EXPECT_TRUE(lock_.try_upgrade());
  EXPECT_EQ(ask({"HGET", "rw", "mode"}), "write");
  EXPECT_EQ(ask({"DBSIZE"}), "1");
  EXPECT_FALSE(rival_.try_acquire_shared());
  lock_.unlock();
  EXPECT_EQ(ask({"DBSIZE"}), "0");
}

TEST_F(redisson, a_force_released_read_write_lock_is_lost) {
  for (const bool reads : {true, false}) {
    lease held = reads ? lock_.acquire_shared() : lock_.acquire();
    EXPECT_EQ(session_.force_release("rw"), 1u);
    java_writes();
    EXPECT_EQ(outcome_of([&] { held.extend(); }).reason, errc::lost);
    EXPECT_EQ(ask({"HLEN", "rw"}), "2");
    ask({"DEL", "rw"});
  }
}

TEST_F(redisson, a_reader_whose_release_got_no_answer_has_released) {
  harness::fault_proxy network(server_.port());
  const auto far =
      holdfast::open("redis://127.0.0.1:" + std::to_string(network.port()) + "?dialect=redisson");
  const auto beside = lock_.acquire_shared();
  shared_mutex there(far, "rw", {{.renew = false}, {}});
  lease held = there.acquire_shared();
  network.with([](auto& relay) { relay.cut_after(harness::way::down, 0); });
  EXPECT_FALSE(held.release());
  EXPECT_GT(network.count().cut, 0u) << "no answer was lost";
  EXPECT_EQ(ask({"HLEN", "rw"}), "2");
}

TEST_F(redisson, a_lease_that_a_java_reader_would_cut_short_is_refused) {
  shared_mutex longer(session_, "longer", {{.lease = 31s}, {}});
  const auto refused = outcome_of([&] { (void)longer.try_acquire_shared(); });
  EXPECT_EQ(refused.reason, errc::invalid_argument);
  EXPECT_TRUE(contains(refused.text, "30 s")) << refused.text;
  EXPECT_EQ(ask({"DBSIZE"}), "0");
}

TEST_F(redisson, each_kind_reports_and_keeps_a_key_of_another_kind) {
  const lease plain = holdfast::mutex(session_, "plain").acquire();
  const lease writes = lock_.acquire();
  latch(session_, "latch", 2).count_down();
  ask({"SET", "page", "<html>"});
  ask({"HSET", "nobody", "mode", "write"});
  const auto all = ask({"DEBUG", "DIGEST"});
  const auto refuses = [](auto use) {
    const auto refused = outcome_of(use);
    EXPECT_EQ(refused.reason, errc::kind_mismatch) << refused.text;
  };
  for (const char* name : {"rw", "latch", "page", "nobody"})
    refuses([&] { holdfast::mutex(session_, name).lock(); });
  for (const char* name : {"plain", "latch", "page", "nobody"})
    refuses([&] { shared_mutex(session_, name).lock_shared(); });
  for (const char* name : {"plain", "rw", "page", "nobody"})
    refuses([&] { latch(session_, name, 2).count_down(); });
  EXPECT_EQ(ask({"DEBUG", "DIGEST"}), all);
}

// ---- the latch

TEST_F(redisson, a_latch_of_ours_is_a_number_and_java_arrivals_notify_us) {
  latch two(session_, "latch", 2);
  auto waits = harness::concurrently([&] { two.wait(); });
  await_listener("redisson_countdownlatch__channel__{latch}");
  EXPECT_EQ(ask({"GET", "latch"}), "2");
  java_counts_down("latch");
  EXPECT_EQ(two.remaining(), 1u);
  java_counts_down("latch");
  waits.get();
  EXPECT_TRUE(latch(other_, "latch", 2).try_wait()) << "it stays open for those who come later";
}

TEST_F(redisson, we_count_down_a_java_latch_and_remove_it_at_zero) {
  ask({"SET", "latch", "3"});
  latch three(session_, "latch", 3);
  three.count_down(2);
  EXPECT_EQ(ask({"GET", "latch"}), "1");
  EXPECT_EQ(ask({"PTTL", "latch"}), "-1") << "it has no end of ours";
  EXPECT_EQ(session_.show("latch").remaining, 1u);
  EXPECT_FALSE(latch(other_, "latch", 3).try_wait());
  three.count_down();
  EXPECT_EQ(ask({"EXISTS", "latch"}), "0");
  EXPECT_EQ(outcome_of([&] { three.count_down(); }).reason, errc::invalid_argument);
  EXPECT_TRUE(three.wait_for(0ms));
}

TEST_F(redisson, a_latch_with_more_arrivals_left_than_our_count_is_refused) {
  ask({"SET", "latch", "3"});
  latch two(session_, "latch", 2);
  EXPECT_EQ(outcome_of([&] { two.count_down(); }).reason, errc::capacity_mismatch);
  EXPECT_EQ(outcome_of([&] { (void)two.remaining(); }).reason, errc::capacity_mismatch);
  EXPECT_EQ(ask({"GET", "latch"}), "3");
}

TEST_F(redisson, more_arrivals_than_remain_are_refused_and_make_no_latch) {
  latch two(session_, "latch", 2);
  EXPECT_EQ(outcome_of([&] { two.count_down(3); }).reason, errc::invalid_argument);
  EXPECT_EQ(ask({"DBSIZE"}), "0");
  EXPECT_EQ(two.remaining(), 2u);
}

TEST_F(redisson, a_latch_that_is_removed_starts_over_for_its_waiters) {
  latch two(session_, "latch", 2);
  two.count_down();
  auto waits = harness::concurrently([&] { latch(other_, "latch", 2).wait(); });
  await_listener("redisson_countdownlatch__channel__{latch}");
  two.remove();
  harness::eventually("it is made again", [&] { return ask({"GET", "latch"}) == "2"; });
  two.count_down(2);
  waits.get();
}

}  // namespace
}  // namespace interop_test
