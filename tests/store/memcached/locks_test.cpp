#include <thread>

#include "store/memcached/fixture.hpp"

namespace memcached_test {
namespace {

TEST_F(memcached_store, a_release_does_not_remove_another_program_s_item) {
  const auto session = open();
  lease held = mutex(session, "orders").acquire();
  put(foreign_record());
  EXPECT_EQ(held.release(), make_error_code(errc::lost));
  EXPECT_EQ(value(), foreign_record());
}

// After a restart the server counts the unique numbers of its items from one again: the other's
// lock has the number that ours had.
TEST_F(memcached_store, a_release_after_a_restart_does_not_remove_the_lock_of_the_next) {
  const auto session = open();
  lease held = mutex(session, "orders").acquire();
  const std::string number = server_.ask("mg holdfast:orders c\r\n");
  server_.kill();
  server_.start();
  put(foreign_record());
  ASSERT_EQ(server_.ask("mg holdfast:orders c\r\n"), number);
  EXPECT_EQ(held.release(), make_error_code(errc::lost));
  EXPECT_EQ(value(), foreign_record());
}

TEST_F(memcached_store, an_extension_after_a_restart_does_not_write_over_the_lock_of_the_next) {
  const auto session = open();
  lease held = mutex(session, "orders").acquire();
  server_.kill();
  server_.start();
  put(foreign_record());
  EXPECT_EQ(outcome_of([&] { held.extend(); }).reason, errc::lost);
  EXPECT_EQ(value(), foreign_record());
}

TEST_F(memcached_store, leases_are_whole_seconds_and_never_shorter_than_asked_for) {
  const auto session = open();
  for (const auto bad : {500ms, 999ms, 1'500ms, std::chrono::milliseconds(30 * 24h)}) {
    const auto refused = outcome_of([&] { mutex(session, "orders", {.lease = bad}); });
    EXPECT_EQ(refused.reason, errc::invalid_argument) << bad.count();
  }
  EXPECT_EQ(outcome_of([&] { open({}, {.lease = 1'500ms}); }).reason, errc::invalid_argument);
  harness::eventually("one second more, if the clock does not tick just now", [&] {
    const lease short_one = mutex(session, "orders", {.lease = 30s}).acquire();
    return server_.ask("mg holdfast:orders t\r\n") == "HD t31\r\n";
  });
  lease held = mutex(session, "orders", {.lease = 30s}).acquire();
  EXPECT_EQ(outcome_of([&] { held.extend(1'500ms); }).reason, errc::invalid_argument);
  held.extend(std::chrono::seconds(session.can().max_lease_s));
  EXPECT_TRUE(server_.ask("mg holdfast:orders t\r\n").starts_with("HD t259"));
}

TEST_F(memcached_store, data_of_another_program_is_reported_and_not_changed) {
  put("a cached page");
  const auto session = open();
  const auto refused = outcome_of([&] { mutex(session, "orders").lock(); });
  EXPECT_EQ(refused.reason, errc::kind_mismatch);
  EXPECT_TRUE(contains(refused.text, "a cached page")) << refused.text;
  EXPECT_EQ(outcome_of([&] { session.show("orders"); }).reason, errc::kind_mismatch);
  EXPECT_EQ(value(), "a cached page");
}

TEST_F(memcached_store, an_unreadable_entry_is_listed_and_hides_no_other) {
  const auto session = open();
  const lease held = mutex(session, "good").acquire();
  put("hf1 0123456789abcdef mutex", "holdfast:damaged");
  put("hf2 something else", "holdfast:newer");
  put("a cached page", "holdfast:foreign");
  EXPECT_EQ(session.names(), (std::vector<std::string>{"damaged", "foreign", "good", "newer"}));
  EXPECT_EQ(session.show("good").holders.size(), 1U);
  const auto refused = [&](const char* name) {
    return outcome_of([&] { (void)session.show(name); }).reason;
  };
  EXPECT_EQ(refused("damaged"), errc::corrupt);
  EXPECT_EQ(refused("newer"), errc::newer_format);
  EXPECT_EQ(refused("foreign"), errc::kind_mismatch);
}

// Keys in base64 may contain any bytes.
TEST_F(memcached_store, a_key_that_no_name_makes_is_not_listed_and_ends_no_command) {
  const auto session = open();
  const lease held = mutex(session, "good").acquire();
  // "holdfast:x\r\nflush_all\r\n"
  ASSERT_EQ(server_.ask("ms aG9sZGZhc3Q6eA0KZmx1c2hfYWxsDQo= 1 b\r\nv\r\n"), "HD\r\n");
  EXPECT_EQ(session.names(), std::vector<std::string>{"good"});
  EXPECT_NE(value_of("good"), "") << "nothing was flushed";
}

TEST_F(memcached_store, one_owner_of_several_names_has_the_fence_of_each) {
  const auto session = open();
  mutex one(session, "one"), two(session, "two");
  for (int i = 0; i < 3; ++i) (void)two.acquire();
  holdfast::multi_lock both{one, two};
  auto held = both.acquire();
  const auto fences = held.fences();
  EXPECT_NE(fences[0], fences[1]);
  held.extend();
  EXPECT_EQ(held.fences(), fences);
  EXPECT_EQ(session.show("one").holders.at(0).fence, fences[0]);
  EXPECT_EQ(session.show("two").holders.at(0).fence, fences[1]);
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(session.names().empty());
}

TEST_F(memcached_store, a_damaged_fence_counter_is_reported_and_the_lock_is_not_kept) {
  put("no number", "holdfast:orders%n");
  const auto session = open();
  EXPECT_EQ(outcome_of([&] { mutex(session, "orders").lock(); }).reason, errc::kind_mismatch);
  EXPECT_EQ(value(), "");
}

TEST_F(memcached_store, fences_grow_after_the_counter_was_removed) {
  const auto session = open();
  mutex orders(session, "orders");
  const auto first = orders.acquire().fence();
  const auto second = orders.acquire().fence();
  EXPECT_GT(second, first);
  ASSERT_EQ(server_.ask("md holdfast:orders%n\r\n"), "HD\r\n");
  const auto clock_of = [&] {
    const auto stats = server_.ask("stats\r\n");
    return std::stoll(stats.substr(stats.find("STAT time ") + 10));
  };
  const auto now = clock_of();
  harness::eventually("the next second", [&] { return clock_of() > now; });
  EXPECT_GT(orders.acquire().fence(), second);
  EXPECT_FALSE(session.can().fences)
      << "nobody promises that for a server's clock that is set back";
}

TEST_F(memcached_store, the_end_of_a_lease_without_renewal_makes_room) {
  const auto session = open();
  const lease old = mutex(session, "orders", {.lease = 1s, .renew = false}).acquire();
  const auto other = open();
  const lease next = mutex(other, "orders").acquire();
  EXPECT_EQ(old.state(), holdfast::lease_state::lost);
}

TEST_F(memcached_store, a_stored_hold_names_its_owner_in_readable_text) {
  const auto session = open();
  const lease held = mutex(session, "orders", {.reason = "nightly run"}).acquire();
  const auto info = session.show("orders");
  ASSERT_EQ(info.holders.size(), 1u);
  EXPECT_EQ(info.holders[0].reason, "nightly run");
  EXPECT_EQ(info.holders[0].pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_LE(info.holders[0].expires_in.value(), 30s);
  EXPECT_EQ(session.names(), std::vector<std::string>{"orders"});
}

TEST_F(memcached_store, a_semaphore_admits_all_its_permits_and_is_one_name) {
  const auto session = open();
  holdfast::counting_semaphore permits{session, "orders", 20};
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(permits.try_acquire());
  EXPECT_FALSE(permits.try_acquire());
  EXPECT_EQ(session.show("orders").holders.size(), 20u);
  EXPECT_EQ(session.names(), std::vector<std::string>{"orders"});
  permits.release(20);
  EXPECT_TRUE(session.names().empty());
}

TEST_F(memcached_store, permits_in_distant_slots_are_shown_and_can_be_force_released) {
  const auto session = open();
  holdfast::counting_semaphore first{session, "orders", 40}, last{session, "orders", 40};
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(first.try_acquire());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(last.try_acquire());
  first.release(20);
  const auto shown = session.show("orders");
  EXPECT_EQ(shown.capacity, 40u);
  EXPECT_EQ(shown.holders.size(), 3u);
  EXPECT_EQ(session.force_release("orders"), 3u);
  EXPECT_TRUE(session.names().empty());
}

TEST_F(memcached_store, a_semaphore_has_at_most_as_many_slots_as_can_be_read) {
  const auto session = open();
  const auto most = session.can().max_slots;
  holdfast::counting_semaphore permits{session, "orders", most};
  ASSERT_TRUE(permits.try_acquire());
  EXPECT_EQ(session.show("orders").capacity, most);
  const auto refused =
      outcome_of([&] { holdfast::counting_semaphore(session, "orders", most + 1); });
  EXPECT_EQ(refused.reason, errc::unsupported);
  EXPECT_TRUE(contains(refused.text, std::to_string(most))) << refused.text;
}

TEST_F(memcached_store, an_unsupported_primitive_is_refused_with_the_reason) {
  const auto session = open();
  for (const auto& refused : {outcome_of([&] { holdfast::fair_mutex(session, "a"); }),
                              outcome_of([&] { holdfast::shared_mutex(session, "a"); }),
                              outcome_of([&] { holdfast::semaphore(session, "a", 2); }),
                              outcome_of([&] { holdfast::expiring_semaphore(session, "a", 2); }),
                              outcome_of([&] { holdfast::latch(session, "a", 2); }),
                              outcome_of([&] { mutex(session, "a", {.linger = 1ms}); })}) {
    EXPECT_EQ(refused.reason, errc::unsupported);
    EXPECT_TRUE(contains(refused.text, "no queue")) << refused.text;
  }
}

// The server makes one list at a time, and refuses the others: each waits for its turn.
TEST_F(memcached_store, several_threads_may_list_the_names_at_once) {
  const auto session = open("?command_timeout=1h");
  mutex m{session, "orders"};
  m.lock();
  std::vector<std::thread> all;
  for (int i = 0; i < 4; ++i) {
    all.emplace_back([&] {
      for (int k = 0; k < 20; ++k) EXPECT_NO_THROW((void)session.names());  // it may miss some
    });
  }
  for (auto& t : all) t.join();
}

}  // namespace
}  // namespace memcached_test
