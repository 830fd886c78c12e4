#include <gtest/gtest.h>

#include <atomic>

#include "harness/next_wake.hpp"
#include "stage.hpp"

// A grant that nobody uses here is released to the store, even if a first attempt failed. The clock
// stands still, so no lease ends by itself.
namespace {

using namespace engine_test;
using holdfast::event_kind;
using holdfast::mutex;
using holdfast::testing::fault;
using verb = holdfast::store::permits_verb;

struct given_back : testing::Test {
  void await_free(const std::string& name) {
    harness::eventually(name + " is free", [&] { return s.session.show(name).holders.empty(); });
  }
  stage s;
};

TEST_F(given_back, an_idle_lock_that_was_lost_here_is_released_at_the_store) {
  mutex m{s.session, "m", {.linger = 1h}};
  m.lock(), m.unlock();
  s.script->set(verb::renew, fault::drop_reply);  // the store extends it
  s.clock->advance(10s);
  s.seen->await(event_kind::suspect);
  s.clock->advance(19'900ms);
  s.seen->await(event_kind::lost);
  await_free("m");
}

TEST_F(given_back, each_of_several_locks_is_released_after_an_unheard_grant) {
  mutex a{s.session, "a"}, b{s.session, "b"};
  holdfast::multi_lock both{a, b};
  s.script->set(verb::acquire, fault::drop_reply);
  EXPECT_THROW((void)both.try_lock(), holdfast::error);
  await_free("a");
  await_free("b");
}

TEST_F(given_back, a_queue_entry_of_a_stopped_wait_is_removed_after_a_lost_request) {
  holdfast::fair_mutex m{s.session, "m"};
  const auto held = m.acquire();
  std::stop_source stop;
  auto waiting = async_acquire(m, {}, stop.get_token()).future();
  s.await_waiters("m", 1);
  s.script->set(verb::release, fault::drop_request);
  stop.request_stop();
  EXPECT_EQ(waiting.get().error().code, holdfast::errc::cancelled);
  s.script->set(verb::release, fault::none);
  int steps = 10;  // its queue entry would end by itself after four seconds
  harness::eventually("its place is free", [&] {
    if (steps-- > 0) harness::pass(*s.clock, 200ms);
    return s.session.show("m").waiters.empty();
  });
}

// A lost request must not cost the others a lease.
TEST(given_back_at_the_end, a_lock_is_released_after_several_lost_requests) {
  constexpr int lost = 3;  // the release, the keeper's attempt at it, and the first at the end
  const auto clock = std::make_shared<holdfast::testing::fake_clock>();
  const auto other = holdfast::open("memory:last-tries", {.clock = clock});
  const auto releases = std::make_shared<std::atomic<int>>(0);
  {
    holdfast::session_options o;
    o.clock = clock;
    holdfast::testing::fault_plan plan;
    plan.choose = [releases](auto, auto, auto v) {
      return v == verb::release && ++*releases <= lost ? fault::drop_request : fault::none;
    };
    o.decorate = holdfast::testing::faulty(plan, clock);
    const auto session = holdfast::open("memory:last-tries", o);
    auto held = mutex(session, "m").acquire();
    EXPECT_EQ(held.release(), holdfast::errc::unavailable);
    harness::eventually("the keeper's try", [&] { return *releases == 2; });
  }
  EXPECT_EQ(*releases, lost + 1);
  EXPECT_TRUE(other.show("m").holders.empty());
}

// A session that ends sends the releases that are still due.
TEST(given_back_for_nothing, is_nothing_of_an_admission_that_was_refused_for_good) {
  const std::string url = "memory:refused-admission";
  stage s{url};
  mutex other{s.session, "permits"};
  other.lock();
  {
    auto session = holdfast::open(url, s.options());
    holdfast::semaphore permits{session, "permits", 2};
    holdfast::rate_limiter tokens{session, "tokens", {{.tokens = 10}}};
    holdfast::admission door{tokens, permits};
    EXPECT_THROW((void)door.try_admit(), holdfast::error);
  }
  EXPECT_EQ(s.script->count(verb::release), 0U);
  other.unlock();
}

}  // namespace
