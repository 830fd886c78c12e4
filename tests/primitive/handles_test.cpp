#include <gtest/gtest.h>

#include <holdfast/both.hpp>
#include <set>
#include <thread>

#include "engine/stage.hpp"
#include "harness/concurrently.hpp"
#include "harness/thread_ids.hpp"
#include "lease/hold.hpp"
#include "primitive/thread_number.hpp"

// The handles while users' code runs in the middle of a call, and what threads own.
namespace {

using namespace engine_test;
using fault = holdfast::testing::fault;
using verb = holdfast::store::permits_verb;
using holdfast::errc;
using holdfast::lease;
using holdfast::shared_mutex;

template <class F>
errc reason_of(F f) {
  try {
    f();
  } catch (const holdfast::error& e) {
    return e.reason();
  }
  return errc{};
}

/// Releases the lease when its loss is reported, and checks that the hold still exists then, for
/// the thread that reports.
struct gives_back {
  explicit gives_back(lease& of)
      : held(of),
        behind(holdfast::engine::hold::shared_behind(of)),
        on_loss(of.lost(), told{*this}) {}
  struct told {
    gives_back& of;
    void operator()() const {
      EXPECT_EQ(harness::held_mutexes(), 0);
      EXPECT_EQ(of.held.release(), errc::lost);
      of.kept = !of.behind.expired();
      of.was_told = true;
    }
  };
  lease& held;
  std::weak_ptr<holdfast::engine::hold> behind;
  std::atomic<bool> was_told{false}, kept{false};
  std::stop_callback<told> on_loss;
};

struct taken_away : testing::Test {
  stage s;
  shared_mutex lock{s.session, "orders"};
  holdfast::mutex plain{s.session, "plain"};

  template <class Call>
  void expect_kept(lease held, Call call) {
    gives_back gives(held);
    EXPECT_EQ(s.session.force_release(held.name()), 1u);
    EXPECT_EQ(reason_of([&] { call(held); }), errc::lost);
    EXPECT_TRUE(gives.was_told);
    EXPECT_TRUE(gives.kept) << "freed while the call still used it";
  }
};

TEST_F(taken_away, a_downgrade_completes_although_its_lease_is_released) {
  expect_kept(lock.acquire(), [&](lease& held) { lock.downgrade(held); });
}

TEST_F(taken_away, an_upgrade_completes_although_its_lease_is_released) {
  expect_kept(lock.acquire_shared(), [&](lease& held) { (void)lock.try_upgrade(held); });
}

TEST_F(taken_away, an_async_downgrade_completes_although_its_lease_is_released) {
  expect_kept(lock.acquire(),
              [&](lease& held) { (void)async_downgrade(lock, held).future().get().value(); });
}

TEST_F(taken_away, an_async_upgrade_completes_although_its_lease_is_released) {
  expect_kept(lock.acquire_shared(),
              [&](lease& held) { (void)async_upgrade(lock, held).future().get().value(); });
}

TEST_F(taken_away, an_extension_completes_although_its_lease_is_released) {
  expect_kept(plain.acquire(), [](lease& held) { held.extend(); });
  expect_kept(plain.acquire(), [](lease& held) { held.extend(10s); });
  expect_kept(plain.acquire(),
              [](lease& held) { (void)async_extend(held).future().get().value(); });
}

TEST_F(taken_away, an_extension_of_several_ends_although_a_callback_releases_them) {
  holdfast::multi_lock all{plain, lock};
  const auto expect_lost = [&](auto extend) {
    auto held = all.acquire();
    std::error_code released;
    const auto give_back = [&] { released = held.release(); };
    const std::stop_callback on_loss{held.lost(), give_back};
    EXPECT_EQ(s.session.force_release("plain"), 1u);
    EXPECT_EQ(reason_of([&] { extend(held); }), errc::lost);
    EXPECT_EQ(released, errc::lost);
    EXPECT_TRUE(s.session.show("orders").holders.empty());
  };
  expect_lost([](auto& held) { held.extend(); });
  expect_lost([](auto& held) { (void)async_extend(held).future().get().value(); });
  expect_lost([](auto& held) { (void)async_extend(held, 10s).future().get().value(); });
}

TEST_F(taken_away, a_callback_of_a_loss_may_unlock_in_the_middle_of_a_downgrade) {
  lock.lock();
  {
    const auto unlock = [&] { lock.unlock(); };
    const std::stop_callback on_loss{lock.lost(), unlock};
    EXPECT_EQ(s.session.force_release("orders"), 1u);
    EXPECT_EQ(reason_of([&] { lock.downgrade(); }), errc::lost);
  }
  EXPECT_EQ(lock.fence(), 0u);
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

TEST_F(taken_away, the_lock_object_may_go_in_the_middle_of_a_downgrade) {
  auto own = std::make_unique<shared_mutex>(s.session, "own");
  lease held = own->acquire();
  const auto destroy = [&] { own.reset(); };
  const std::stop_callback on_loss{held.lost(), destroy};
  EXPECT_EQ(s.session.force_release("own"), 1u);
  EXPECT_EQ(reason_of([&] { own->downgrade(held); }), errc::lost);
}

// ---- both

TEST(both_leases, that_are_assigned_release_their_former_locks_first) {
  stage s;
  holdfast::mutex a{s.session, "a"}, b{s.session, "b"}, c{s.session, "c"}, d{s.session, "d"};
  holdfast::both first{a, b}, second{c, d};
  auto held = first.acquire();
  auto others = second.acquire();
  const auto fence = others.fence();
  held = std::move(others);
  EXPECT_EQ(held.fence(), fence);
  EXPECT_FALSE(others);
  EXPECT_TRUE(a.try_acquire());
  EXPECT_TRUE(b.try_acquire());
  EXPECT_FALSE(c.try_acquire());
  EXPECT_FALSE(d.try_acquire());
}

// At no moment is there one of the new pair beside one of the old.
TEST(both_leases, that_are_assigned_never_mix_old_and_new_locks) {
  stage s;
  holdfast::mutex a{s.session, "a"}, b{s.session, "b"}, c{s.session, "c"}, d{s.session, "d"};
  holdfast::both first{a, b}, second{c, d};
  auto held = first.acquire();
  auto others = second.acquire();
  bool whole = true, seen = false;
  const auto looks = [&] {
    seen = true;
    whole = whole && others.old() && others.next();
  };
  const std::stop_callback of_old{held.old().lost(), looks};
  const std::stop_callback of_next{held.next().lost(), looks};
  EXPECT_EQ(s.session.force_release("a"), 1u);
  EXPECT_EQ(s.session.force_release("b"), 1u);
  held = std::move(others);
  EXPECT_TRUE(seen);
  EXPECT_TRUE(whole);
  EXPECT_TRUE(held);
}

TEST(both_leases, may_be_destroyed_while_their_release_reports_a_loss) {
  stage s;
  holdfast::mutex a{s.session, "a"}, b{s.session, "b"};
  holdfast::both pair{a, b};
  std::optional<holdfast::both_leases> held = pair.acquire();
  const auto destroy = [&] { held.reset(); };
  const std::stop_callback on_loss{held->next().lost(), destroy};
  EXPECT_EQ(s.session.force_release("b"), 1u);
  EXPECT_EQ(held->release(), errc::lost);
  EXPECT_TRUE(a.try_acquire());
}

template <class Begin>
void expect_one_deadline_for_both(Begin begin) {
  stage s("memory:one-deadline");
  const auto elsewhere = holdfast::open("memory:one-deadline", {.clock = s.clock});
  std::optional<lease> first = holdfast::mutex(elsewhere, "a").acquire();
  const lease second = holdfast::mutex(elsewhere, "b").acquire();
  holdfast::mutex a{s.session, "a"}, b{s.session, "b"};
  holdfast::both pair{a, b};
  auto got = begin(pair);
  s.await_waiters("a", 1);
  s.await_wake_within(6s);  // the wait; the thread that renews sleeps for longer
  s.clock->advance(6s);
  first.reset();
  s.await_waiters("b", 1);
  s.clock->advance(5s);
  EXPECT_FALSE(got.get());
  EXPECT_TRUE(a.try_acquire());
}

TEST(both_locks, wait_for_one_time_on_the_clock_of_the_session) {
  expect_one_deadline_for_both([](auto& pair) {
    return harness::concurrently([&] { return pair.try_acquire_for(10s).has_value(); });
  });
  expect_one_deadline_for_both(
      [](auto& pair) { return harness::concurrently([&] { return pair.try_lock_for(10s); }); });
  expect_one_deadline_for_both([](auto& pair) {
    return harness::concurrently([&] { return async_acquire(pair, 10s).future().get().ok(); });
  });
}

// ---- with_lock

TEST(with_lock, accepts_everything_that_yields_a_lease) {
  stage s;
  holdfast::mutex a{s.session, "a"}, b{s.session, "b"};
  holdfast::fair_mutex fair{s.session, "fair"};
  shared_mutex shared{s.session, "shared"};
  holdfast::semaphore permits{s.session, "permits", 2};
  holdfast::multi_lock all{a, b};
  holdfast::redlock most{{s.session}, "most"};
  holdfast::both pair{a, b};
  holdfast::election leads{s.session, "leads"};
  const auto three = [] { return 3; };
  EXPECT_EQ(with_lock(a, [](lease& held) { return held.name(); }), "a");
  EXPECT_EQ(with_lock(fair, three), 3);
  EXPECT_EQ(with_lock(shared, three), 3);
  EXPECT_EQ(with_lock(permits, three), 3);
  EXPECT_EQ(with_lock(all, [](holdfast::multi_lease& held) { return held.fences().size(); }), 2u);
  EXPECT_TRUE(with_lock(most, [](holdfast::quorum_lease& held) { return bool(held); }));
  EXPECT_TRUE(with_lock(pair, [](holdfast::both_leases& held) { return bool(held); }));
  EXPECT_GT(with_lock(leads, [](holdfast::leadership& mine) { return mine.term(); }), 0u);
  EXPECT_TRUE(all.try_acquire());
  EXPECT_TRUE(most.try_acquire());
  EXPECT_TRUE(leads.try_campaign());
}

TEST(with_lock, reports_a_loss_of_any_kind_of_lease) {
  stage s;
  holdfast::mutex a{s.session, "a"}, b{s.session, "b"};
  holdfast::multi_lock all{a, b};
  holdfast::both pair{a, b};
  holdfast::election leads{s.session, "leads"};
  const auto lose = [&](const char* name) { return [&s, name] { s.session.force_release(name); }; };
  EXPECT_EQ(reason_of([&] { with_lock(all, lose("b")); }), errc::lost);
  EXPECT_EQ(reason_of([&] { with_lock(pair, lose("a")); }), errc::lost);
  EXPECT_EQ(reason_of([&] { with_lock(leads, lose("leads")); }), errc::lost);
}

// ---- election

TEST(on_leader, work_that_returns_while_renewals_fail_is_over) {
  stage s;
  holdfast::election leads{s.session, "leads"};
  int times = 0;
  leads.on_leader([&](std::stop_token, const holdfast::leadership& mine) {
    ASSERT_EQ(++times, 1) << "the work was done, and is done again";
    s.script->set(verb::renew, fault::drop_request);
    s.clock->advance(10s);
    harness::eventually("in doubt", [&] { return mine.state() == holdfast::lease_state::suspect; });
    EXPECT_NO_THROW(mine.check());
  });
  EXPECT_EQ(times, 1);
}

TEST(on_leader, work_whose_leadership_was_lost_is_done_again) {
  stage s;
  holdfast::election leads{s.session, "leads"};
  int times = 0;
  leads.on_leader([&](std::stop_token end, const holdfast::leadership& mine) {
    if (++times > 1) return;
    s.clock->advance(31s);
    harness::eventually("told", [&] { return end.stop_requested(); });
    EXPECT_EQ(mine.state(), holdfast::lease_state::lost);
  });
  EXPECT_EQ(times, 2);
}

// ---- threads

TEST(thread_number, of_a_thread_is_never_that_of_another) {
  using holdfast::primitive::this_thread_number;
  std::set<holdfast::primitive::thread_number> all{this_thread_number()};
  for (int i = 0; i < 100; ++i) {
    std::thread([&] {
      EXPECT_TRUE(all.insert(this_thread_number()).second);
      EXPECT_FALSE(all.insert(this_thread_number()).second);
    }).join();
  }
  EXPECT_EQ(all.count(holdfast::primitive::no_thread), 0u);
}

TEST(a_thread_that_ended_with_a_lock, leaves_it_to_no_other_thread_of_its_id) {
  stage s;
  holdfast::recursive_mutex again{s.session, "again"};
  holdfast::mutex plain{s.session, "plain"};
  shared_mutex shared{s.session, "shared"};
  holdfast::mutex a{s.session, "a"}, b{s.session, "b"};
  holdfast::multi_lock all{a, b};
  holdfast::redlock most{{s.session}, "most"};
  harness::in_a_thread_of_the_same_id(
      [&] {
        again.lock();
        plain.lock();
        shared.lock();
        all.lock();
        most.lock();
      },
      [&] {
        EXPECT_EQ(again.level(), 0u);
        EXPECT_FALSE(again.try_lock());
        EXPECT_EQ(plain.fence(), 0u);
        EXPECT_EQ(shared.fence(), 0u);
        EXPECT_TRUE(all.fences().empty());
        EXPECT_EQ(most.fence(), 0u);
        plain.unlock();
        shared.unlock();
        all.unlock();
        most.unlock();
      });
  EXPECT_FALSE(plain.try_acquire());
  EXPECT_FALSE(shared.try_acquire());
  EXPECT_FALSE(all.try_acquire());
  EXPECT_FALSE(most.try_acquire());
}

}  // namespace
