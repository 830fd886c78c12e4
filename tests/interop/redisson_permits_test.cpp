#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "harness/concurrently.hpp"
#include "harness/eventually.hpp"
#include "harness/failing.hpp"
#include "harness/fault_proxy.hpp"
#include "harness/redis_server.hpp"
#include "harness/tcp.hpp"

// Redisson's two semaphores, seen from the server; Redisson's own steps are written here as it
// writes them.
namespace interop_test {
namespace {

using namespace std::chrono_literals;
using harness::contains;
using harness::outcome_of;
using holdfast::errc;
using holdfast::expiring_semaphore;
using holdfast::lease;
using holdfast::permit;
using holdfast::semaphore;

constexpr auto channel = "redisson_sc:{sem}";

class redisson_permits : public testing::Test {
 protected:
  redisson_permits() {
    server_.may_stay("*", "the semaphores of Redisson stay when nobody uses them");
  }
  std::string ask(const std::vector<std::string>& words) const { return server_.ask(words); }
  holdfast::session open() const { return holdfast::open(server_.url("?dialect=redisson")); }
  std::string number() const { return ask({"GET", "sem"}); }
  void java_makes(const std::string& count) const { ask({"SET", "sem", count}); }
  void java_takes(const std::string& count = "1") const { ask({"DECRBY", "sem", count}); }
  void java_gives_back(const std::string& count = "1") const {
    ask({"PUBLISH", channel, ask({"INCRBY", "sem", count})});
  }
  /// Of an RPermitExpirableSemaphore, this many milliseconds before its end.
  void java_takes_permit(const std::string& id, long long left_ms) const {
    java_takes();
    ask({"ZADD", "{sem}:timeout", std::to_string(server_time() + left_ms), id});
  }
  long long server_time() const {
    const auto said = ask({"TIME"});
    return std::stoll(said) * 1'000 + std::stoll(said.substr(said.find(' '))) / 1'000;
  }
  void await_listener() const {
    harness::eventually("somebody listens", [&] {
      return ask({"PUBSUB", "NUMSUB", channel}) != channel + std::string(" 0");
    });
  }

  const harness::redis_server server_;
  const holdfast::session session_ = open();
  const holdfast::session other_ = open();
  semaphore three_{session_, "sem", 3};
  semaphore rival_{other_, "sem", 3};
  expiring_semaphore two_{session_, "sem", 2};
  expiring_semaphore same_{other_, "sem", 2};
};

// ---- RSemaphore

TEST_F(redisson_permits, a_semaphore_is_the_number_of_its_free_permits_and_is_kept) {
  {
    const lease two = three_.acquire(2);
    EXPECT_EQ(number(), "1");
    EXPECT_FALSE(rival_.try_acquire(2));
    const auto one = rival_.try_acquire();
    EXPECT_TRUE(one);
    EXPECT_EQ(number(), "0");
    EXPECT_EQ(two.fence(), 0u);
  }
  EXPECT_EQ(number(), "3");
  EXPECT_EQ(ask({"PTTL", "sem"}), "-1");
  EXPECT_EQ(ask({"DBSIZE"}), "1") << "nothing of ours is left beside it";
}

TEST_F(redisson_permits, permits_held_by_java_are_awaited_on_its_channel) {
  java_makes("3");
  java_takes("3");
  EXPECT_EQ(three_.available(), 0u);
  EXPECT_FALSE(three_.try_acquire());
  auto waits = harness::concurrently([&] { return three_.acquire(2); });
  await_listener();
  java_gives_back("2");
  const lease two = waits.get();
  EXPECT_EQ(number(), "0");
}

TEST_F(redisson_permits, a_release_publishes_the_number_of_free_permits) {
  java_makes("3");
  lease one = three_.acquire();
  harness::tcp_client listener(server_.port());
  listener.say("SUBSCRIBE redisson_sc:{sem}\r\n");
  await_listener();
  EXPECT_FALSE(one.release());
  listener.say("QUIT\r\n");
  const auto heard = listener.hear_all();
  EXPECT_TRUE(contains(heard, "redisson_sc:{sem}\r\n$1\r\n3\r\n")) << heard;
}

TEST_F(redisson_permits, permits_of_a_dead_holder_of_ours_return_with_our_next_request) {
  java_makes("3");
  semaphore dies(other_, "sem", 3, {.lease = 1h, .renew = false});
  lease dead = dies.acquire(2);
  EXPECT_FALSE(three_.try_acquire(2));
  try {
    dead.extend(holdfast::min_lease);
  } catch (const holdfast::error& e) {  // its lease may be over when the answer comes
    EXPECT_EQ(e.code(), errc::lost) << e.what();
  }
  const auto got = three_.try_acquire_for(1min, 3);
  EXPECT_TRUE(got);
  EXPECT_EQ(dead.state(), holdfast::lease_state::lost);
  EXPECT_EQ(number(), "0");
}

// Beside a semaphore that Java keeps: as long as anybody can come for those permits, and not for
// ever.
TEST_F(redisson_permits, the_record_of_our_holders_outlives_the_last_holder_by_a_year) {
  using namespace std::chrono;
  const auto lasts = [&](const std::string& what) {
    return milliseconds(std::stoll(ask({"PTTL", "{sem}:holdfast:" + what})));
  };
  semaphore long_lived(other_, "sem", 3, {.lease = 1h, .renew = false});
  lease last = long_lived.acquire();
  const auto first = three_.acquire();
  for (const std::string what : {"ends", "permits"}) {
    EXPECT_GT(lasts(what), years(1)) << what;
    EXPECT_LT(lasts(what), years(2)) << what;
    ask({"PEXPIRE", "{sem}:holdfast:" + what, "60000"});
  }
  last.extend();
  for (const std::string what : {"ends", "permits"}) EXPECT_GT(lasts(what), years(1) - 1h) << what;
  for (const std::string what : {"ends", "permits"}) ask({"PERSIST", "{sem}:holdfast:" + what});
  const auto second = three_.acquire();
  for (const std::string what : {"ends", "permits"}) EXPECT_GT(lasts(what), 0ms) << what;
}

TEST_F(redisson_permits, a_step_that_was_carried_out_without_an_answer_counts_once) {
  harness::fault_proxy network(server_.port());
  const auto far =
      holdfast::open("redis://127.0.0.1:" + std::to_string(network.port()) + "?dialect=redisson");
  semaphore there(far, "sem", 3, {.renew = false});
  const lease first = there.acquire();
  network.with([](auto& relay) { relay.cut_after(harness::way::down, 0); });
  lease second = there.acquire();
  EXPECT_EQ(number(), "1");
  network.with([](auto& relay) { relay.cut_after(harness::way::down, 0); });
  EXPECT_FALSE(second.release());
  EXPECT_EQ(number(), "2");
  EXPECT_EQ(network.count().cut, 2u) << "no answer was lost";
}

TEST_F(redisson_permits, another_capacity_is_refused_if_it_can_be_known) {
  java_makes("5");
  EXPECT_EQ(outcome_of([&] { (void)three_.try_acquire(); }).reason, errc::capacity_mismatch);
  java_takes("2");
  const auto held = three_.try_acquire();
  EXPECT_TRUE(held) << "nobody knows that there are five";
  const auto refused = outcome_of([&] { (void)semaphore(other_, "sem", 4).try_acquire(); });
  EXPECT_EQ(refused.reason, errc::capacity_mismatch);
  EXPECT_TRUE(contains(refused.text, "3 permits") && contains(refused.text, "4")) << refused.text;
  EXPECT_EQ(number(), "2");
}

TEST_F(redisson_permits, our_holders_are_shown_and_can_be_force_released) {
  java_makes("3");
  java_takes();
  lease held = three_.acquire();
  const auto info = other_.show("sem");
  ASSERT_EQ(info.holders.size(), 1u);
  EXPECT_EQ(info.holders.at(0).short_id, held.short_id());
  EXPECT_EQ(rival_.available(), 1u);
  EXPECT_EQ(other_.force_release("sem"), 1u);
  EXPECT_EQ(outcome_of([&] { held.extend(); }).reason, errc::lost);
  EXPECT_EQ(number(), "2") << "java's is java's";
}

TEST_F(redisson_permits, all_permits_of_a_removed_semaphore_are_lost) {
  lease held = three_.acquire();
  ask({"DEL", "sem"});
  EXPECT_EQ(outcome_of([&] { held.extend(); }).reason, errc::lost);
  const auto again = rival_.try_acquire(3);
  EXPECT_TRUE(again) << "it begins anew";
}

// ---- RPermitExpirableSemaphore

TEST_F(redisson_permits, a_permit_is_in_the_set_by_the_bytes_of_its_id_with_its_end) {
  const permit p = two_.acquire(1h);
  EXPECT_EQ(number(), "1");
  EXPECT_EQ(ask({"ZCARD", "{sem}:timeout"}), "1");
  const auto ends = std::stoll(ask({"EVAL",
                                    "local id = '' "
                                    "for pair in ARGV[1]:gmatch('%x%x') do "
                                    "id = id .. string.char(tonumber(pair, 16)) end "
                                    "return redis.call('ZSCORE', KEYS[1], id)",
                                    "1", "{sem}:timeout", p.id}));
  EXPECT_NEAR(static_cast<double>(ends - server_time()), 3'600'000, 60'000);
  EXPECT_EQ(p.fence, 0u);
  EXPECT_TRUE(same_.try_extend(p.id, 2h)) << "any client that knows it may";
  EXPECT_TRUE(same_.release(p.id));
  EXPECT_FALSE(same_.release(p.id));
  EXPECT_EQ(number(), "2");
  EXPECT_EQ(ask({"DBSIZE"}), "1");
}

TEST_F(redisson_permits, a_permit_of_java_can_be_extended_and_released_by_its_id) {
  java_makes("2");
  for (const std::string& id :
       {std::string("0123456789abcdef"), std::string("30313233343536373839616263646566")}) {
    java_takes_permit(id, 60'000);
    EXPECT_EQ(two_.available(), 1u) << id;
    EXPECT_TRUE(two_.try_extend("30313233343536373839616263646566", 1h));
    EXPECT_GT(std::stoll(ask({"ZSCORE", "{sem}:timeout", id})), server_time() + 3'000'000);
    EXPECT_TRUE(two_.release("30313233343536373839616263646566"));
    EXPECT_EQ(number(), "2");
  }
}

TEST_F(redisson_permits, an_expired_permit_of_any_program_becomes_free) {
  java_makes("2");
  java_takes_permit("0123456789abcdef", -1);
  const permit mine = two_.acquire(holdfast::min_lease);
  const permit second = same_.acquire(1h);
  const auto third = same_.try_acquire_for(1h, 1min);
  ASSERT_TRUE(third);
  EXPECT_FALSE(two_.release(mine.id)) << "it had ended";
  EXPECT_FALSE(two_.try_extend(mine.id, 1h));
  EXPECT_EQ(number(), "0");
}

TEST_F(redisson_permits, a_waiter_is_notified_when_a_permit_is_released) {
  java_makes("2");
  const permit first = two_.acquire(1h), second = two_.acquire(1h);
  auto waits = harness::concurrently([&] { return same_.acquire(1h); });
  await_listener();
  EXPECT_TRUE(two_.release(first.id));
  EXPECT_TRUE(same_.release(waits.get().id));
}

TEST_F(redisson_permits, another_capacity_of_expiring_permits_is_always_refused) {
  java_makes("3");
  java_takes_permit("0123456789abcdef", 60'000);
  const auto refused = outcome_of([&] { (void)two_.try_acquire(1h); });
  EXPECT_EQ(refused.reason, errc::capacity_mismatch);
  EXPECT_TRUE(contains(refused.text, "3 permits")) << refused.text;
  EXPECT_TRUE(expiring_semaphore(session_, "sem", 3).try_acquire(1h));
}

TEST_F(redisson_permits, each_semaphore_reports_and_keeps_a_key_of_another_kind) {
  const lease plain = holdfast::mutex(session_, "plain").acquire();
  holdfast::latch(session_, "latch", 2).count_down();
  const auto a = semaphore(session_, "a", 2).acquire();
  (void)expiring_semaphore(session_, "b", 2).acquire(1h);
  ask({"SET", "page", "<html>"});
  ask({"SET", "c", "1"});
  ask({"SET", "{c}:timeout", "1"});
  const auto all = ask({"DEBUG", "DIGEST"});
  const auto refuses = [](const std::string& found, auto use) {
    const auto refused = outcome_of(use);
    EXPECT_EQ(refused.reason, errc::kind_mismatch) << refused.text;
    EXPECT_TRUE(contains(refused.text, found)) << refused.text;
  };
  const std::vector<std::pair<std::string, std::string>> neither{
      {"plain", "hash"}, {"latch", "latch"}, {"page", "<html>"}, {"c", "string"}};
  for (const auto& [name, found] : neither) {
    refuses(found, [&, of = name] { (void)semaphore(session_, of, 2).try_acquire(); });
    refuses(found, [&, of = name] { (void)expiring_semaphore(session_, of, 2).try_acquire(1h); });
  }
  refuses("RSemaphore", [&] { (void)expiring_semaphore(session_, "a", 2).try_acquire(1h); });
  refuses("RPermitExpirable", [&] { (void)semaphore(session_, "b", 2).try_acquire(); });
  for (const char* name : {"a", "b"}) {
    refuses("semaphore", [&] { holdfast::latch(session_, name, 2).count_down(); });
    refuses("string", [&] { holdfast::mutex(session_, name).lock(); });
    refuses("string", [&] { holdfast::fair_mutex(session_, name).lock(); });
  }
  EXPECT_EQ(ask({"DEBUG", "DIGEST"}), all);
}

}  // namespace
}  // namespace interop_test
