#include <gtest/gtest.h>

#include <future>

#include "engine/stage.hpp"
#include "harness/concurrently.hpp"
#include "harness/next_wake.hpp"

// A change of a hold whose answer does not come: afterwards both sides agree.
namespace {

using namespace engine_test;
using holdfast::errc;
using holdfast::lease;
using holdfast::lease_state;
using holdfast::result;
using fault = holdfast::testing::fault;
using verb = holdfast::store::permits_verb;

struct resizing : testing::Test {
  stage s{"memory:resizing"};
  holdfast::session elsewhere = holdfast::open("memory:resizing", {.clock = s.clock});
  holdfast::shared_mutex lock{s.session, "orders"}, others{elsewhere, "orders"};

  bool others_read() { return others.try_acquire_shared().has_value(); }
  bool others_write() { return others.try_acquire().has_value(); }

  template <class T>
  result<T> get(std::future<result<T>> f) {
    harness::eventually("the end of it", [&] {
      harness::to_next_wake(*s.clock, 1s);
      return f.wait_for(0s) == std::future_status::ready;
    });
    return f.get();
  }
  /// Both forms, synchronous and asynchronous.
  using form = std::function<std::future<result<bool>>(lease&)>;
  template <class Call>
  static std::future<result<bool>> by_a_thread(Call call) {
    return harness::concurrently([call]() -> result<bool> {
      try {
        return call();
      } catch (const holdfast::error& e) {
        return holdfast::failure{e.reason(), e.what(), e.outcome_unknown()};
      }
    });
  }
  template <class T>
  static std::future<result<bool>> without_one(holdfast::pending<T> p) {
    auto made = std::make_shared<std::promise<result<bool>>>();
    std::move(p).start([made](result<T> how) {
      if (!how) return made->set_value(std::move(how.error()));
      if constexpr (std::is_same_v<T, bool>) return made->set_value(*how);
      made->set_value(true);
    });
    return made->get_future();
  }
  std::vector<form> downgrades() {
    return {[this](lease& l) { return by_a_thread([&] { return lock.downgrade(l), true; }); },
            [this](lease& l) { return without_one(async_downgrade(lock, l)); }};
  }
  std::vector<form> upgrades() {
    return {[this](lease& l) { return by_a_thread([&] { return lock.try_upgrade(l); }); },
            [this](lease& l) { return without_one(async_upgrade(lock, l)); }};
  }
  /// The first answer is lost, the others come.
  result<bool> with_one_lost(const form& change, lease& held) {
    const auto before = s.script->count(verb::resize);
    s.script->set(verb::resize, fault::drop_reply);
    auto got = change(held);
    s.script->await(verb::resize, before + 1);
    s.script->set(verb::resize, fault::none);
    return get(std::move(got));
  }
};

TEST_F(resizing, a_downgrade_whose_reply_is_lost_is_repeated_and_others_read_beside_a_reader) {
  for (const auto& change : downgrades()) {
    lease held = lock.acquire();
    ASSERT_TRUE(with_one_lost(change, held));
    EXPECT_EQ(held.state(), lease_state::held);
    EXPECT_TRUE(others_read());
    EXPECT_FALSE(others_write());
    EXPECT_FALSE(held.release());
    EXPECT_TRUE(others_write());
  }
}

TEST_F(resizing, a_writer_that_may_be_a_reader_at_the_store_is_lost_without_an_answer) {
  for (const auto& change : downgrades()) {
    lease held = lock.acquire();
    s.script->set(verb::resize, fault::drop_reply);
    const auto got = get(change(held));
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, errc::lost);
    EXPECT_TRUE(got.error().outcome_unknown);
    EXPECT_THROW(held.check(), holdfast::error);
    EXPECT_TRUE(held.lost().stop_requested());
    EXPECT_EQ(held.release(), errc::lost);
    EXPECT_TRUE(others_write()) << "it was given back at the store all the same";
    s.script->set(verb::resize, fault::none);
  }
}

TEST_F(resizing, a_lease_released_meanwhile_is_not_reported_as_lost) {
  for (const auto& change : downgrades()) {
    lease held = lock.acquire();
    const auto before = s.script->count(verb::resize);
    s.script->set(verb::resize, fault::drop_reply);
    auto unanswered = change(held);
    s.script->await(verb::resize, before + 1);
    EXPECT_FALSE(held.release());
    const auto got = get(std::move(unanswered));
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, errc::not_owner);
    EXPECT_EQ(s.seen->count(holdfast::event_kind::lost), 0U);
    s.script->set(verb::resize, fault::none);
  }
}

TEST_F(resizing, a_downgrade_that_never_got_there_leaves_a_writer) {
  for (const auto& change : downgrades()) {
    lease held = lock.acquire();
    s.script->set(verb::resize, fault::drop_request);
    const auto got = get(change(held));
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, errc::unavailable);
    EXPECT_NO_THROW(held.check());
    EXPECT_FALSE(others_read());
    s.script->set(verb::resize, fault::none);
  }
}

TEST_F(resizing, an_upgrade_whose_reply_is_lost_is_repeated_and_has_the_fence_of_the_store) {
  for (const auto& change : upgrades()) {
    lease held = lock.acquire_shared();
    const auto before = held.fence();
    const auto got = with_one_lost(change, held);
    ASSERT_TRUE(got);
    EXPECT_TRUE(*got);
    EXPECT_GT(held.fence(), before);
    EXPECT_EQ(held.fence(), s.session.show("orders").last_fence);
    EXPECT_FALSE(others_read());
  }
}

TEST_F(resizing,
       a_reader_that_may_be_a_writer_at_the_store_reads_on_and_reports_an_unknown_outcome) {
  for (const auto& change : upgrades()) {
    lease held = lock.acquire_shared();
    s.script->set(verb::resize, fault::drop_reply);
    const auto got = get(change(held));
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, errc::unavailable);
    EXPECT_TRUE(got.error().outcome_unknown);
    EXPECT_NO_THROW(held.check());
    EXPECT_FALSE(held.release());
    EXPECT_TRUE(others_write());
    s.script->set(verb::resize, fault::none);
  }
}

TEST_F(resizing, a_thread_whose_downgrade_is_repeated_holds_it_as_a_reader) {
  s.script->set(verb::resize, fault::drop_reply);
  auto got = harness::concurrently([&] {
    lock.lock();
    lock.downgrade();
    const bool reads = others_read();
    lock.unlock_shared();
    return reads;
  });
  s.script->await(verb::resize, 1);
  s.script->set(verb::resize, fault::none);
  harness::eventually("the end of it", [&] {
    harness::pass(*s.clock, 10ms);
    return got.wait_for(0s) == std::future_status::ready;
  });
  EXPECT_TRUE(got.get());
  EXPECT_TRUE(others_write());
}

// ---- a lease that is shortened

TEST_F(resizing, a_lease_that_may_be_shorter_at_the_store_is_relied_on_for_no_longer) {
  holdfast::mutex m{s.session, "m"};
  lease held = m.acquire();
  s.script->set(verb::renew, fault::drop_reply);
  EXPECT_THROW(held.extend(1s), holdfast::error);
  EXPECT_LE(held.remaining(), 1s);
  s.clock->advance(1s);
  EXPECT_EQ(held.state(), lease_state::lost);
}

TEST_F(resizing, a_lease_that_was_not_made_shorter_is_relied_on_as_before) {
  holdfast::lock_options by_itself;
  by_itself.renew = false;
  holdfast::mutex m{s.session, "m", by_itself};
  lease held = m.acquire();
  s.script->set(verb::renew, fault::drop_request);
  EXPECT_THROW(held.extend(1s), holdfast::error);
  EXPECT_GT(held.remaining(), 29s);
}

TEST_F(resizing, a_lease_that_is_being_made_shorter_is_relied_on_for_no_longer_meanwhile) {
  holdfast::mutex m{s.session, "m"};
  lease held = m.acquire();
  s.script->set(verb::renew, fault::delay_reply);
  auto extended = async_extend(held, 1s).future();
  harness::eventually("shorter at the store",
                      [&] { return elsewhere.show("m").holders.front().expires_in.value() <= 1s; });
  // Otherwise a later answer, for the keeper, could wait while the clock stands still.
  s.script->set(verb::renew, fault::none);
  EXPECT_LE(held.remaining(), 1s);
  s.clock->advance(50ms);  // as late as the answer is: with more the lease might end before it
  EXPECT_TRUE(extended.get());
}

TEST_F(resizing, a_release_whose_reply_is_lost_is_repeated_until_the_name_is_free) {
  holdfast::mutex m{s.session, "m"};
  holdfast::election leads{s.session, "leads"};
  lease held = m.acquire();
  auto mine = leads.campaign();
  s.script->set(verb::release, fault::drop_request);
  EXPECT_EQ(held.release(), errc::unavailable);
  EXPECT_EQ(mine.resign(), errc::unavailable);
  s.script->set(verb::release, fault::none);
  harness::eventually("free", [&] {
    harness::pass(*s.clock, 100ms);
    return elsewhere.show("m").holders.empty() && elsewhere.show("leads").holders.empty();
  });
}

// The writer has a fence of its own from then on. Formerly the debug options took the fence for
// nobody's.
TEST(resizing_in_order, a_reader_that_became_a_writer_still_has_the_lock) {
  const auto seen = std::make_shared<recorder>();
  const auto s = holdfast::open("memory:", {.observer = seen, .lock_order = true});
  holdfast::shared_mutex a(s, "upgraded");
  holdfast::mutex b(s, "beside the upgraded");
  {
    const std::lock_guard outer{b};
    const std::lock_guard inner{a};
  }
  lease held = a.acquire_shared();
  ASSERT_TRUE(a.try_upgrade(held));
  const std::lock_guard inner{b};
  EXPECT_EQ(seen->count(holdfast::event_kind::lock_order), 1U);
}

}  // namespace
