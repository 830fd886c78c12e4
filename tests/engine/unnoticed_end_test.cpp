#include <gtest/gtest.h>

#include <holdfast/both.hpp>
#include <thread>

#include "harness/failing.hpp"
#include "session/session_impl.hpp"
#include "stage.hpp"

// A lease that has ended, which no thread of the session has noticed yet: the thread that would is
// busy with the observer.
namespace {

using namespace engine_test;
using holdfast::event_kind;
using holdfast::lease;
using holdfast::lease_state;
using holdfast::mutex;

/// Blocks the thread that reports the loss of "bait".
class slow_listener final : public holdfast::observer {
 public:
  void on_event(const holdfast::event& e) override {
    if (e.kind == event_kind::paused) return;  // the machine's
    std::unique_lock lock{mutex_};
    if (e.name != "bait") told_.push_back({e.kind, e.leases});
    if (e.kind != event_kind::lost || e.name != "bait") return;
    listening_ = true;
    changed_.wait(lock, [&] { return let_go_; });
  }
  bool listens() {
    const std::lock_guard guard{mutex_};
    return listening_;
  }
  void let_go() {
    const std::lock_guard guard{mutex_};
    let_go_ = true;
    changed_.notify_all();
  }
  std::vector<unsigned> leases_of(event_kind kind) {
    const std::lock_guard guard{mutex_};
    std::vector<unsigned> all;
    for (const auto& [of, leases] : told_) {
      if (of == kind) all.push_back(leases);
    }
    return all;
  }

 private:
  std::vector<std::pair<event_kind, unsigned>> told_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool listening_ = false, let_go_ = false;
};

struct unnoticed_end : testing::Test {
  ~unnoticed_end() override { listener->let_go(); }
  holdfast::session open() const {
    holdfast::session_options o;
    o.clock = clock;
    o.observer = listener;
    o.lease = 30s;
    holdfast::testing::fault_plan plan;
    plan.choose = [s = script](auto, auto, auto verb) { return s->choose(verb); };
    o.decorate = holdfast::testing::faulty(plan, clock);
    return holdfast::open("memory:", o);
  }
  void pass_the_lease() {
    clock->advance(1s);
    harness::eventually("it is told of the bait", [&] { return listener->listens(); });
    clock->advance(31s);
  }

  std::shared_ptr<holdfast::testing::fake_clock> clock =
      std::make_shared<holdfast::testing::fake_clock>();
  std::shared_ptr<slow_listener> listener = std::make_shared<slow_listener>();
  std::shared_ptr<engine_test::script> script = std::make_shared<engine_test::script>();
  holdfast::session session = open();
  lease bait = mutex(session, "bait", {.lease = 1s, .renew = false}).acquire();
};

TEST_F(unnoticed_end, is_a_loss_for_a_holder_that_checks) {
  mutex m{session, "m"};
  lease held = m.acquire();
  pass_the_lease();
  EXPECT_EQ(held.state(), lease_state::lost);
  EXPECT_TRUE(held.lost().stop_requested());
  EXPECT_THROW(held.check(), holdfast::error);
}

TEST_F(unnoticed_end, is_reported_at_the_release_though_another_thread_waits) {
  mutex m{session, "m", {.local_time = 1h}};
  lease held = m.acquire();
  auto next = async_acquire(m).future();
  harness::eventually("in line",
                      [&] { return session.impl()->local_queue_of("m")->waiting() == 1; });
  pass_the_lease();
  EXPECT_EQ(held.release(), holdfast::errc::lost);
  const auto got = next.get();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->state(), lease_state::held);
}

TEST_F(unnoticed_end, is_reported_once_by_the_release_that_finds_it) {
  lease held = mutex(session, "m").acquire();
  const auto lost = held.lost();
  pass_the_lease();
  EXPECT_EQ(held.release(), holdfast::errc::lost);
  EXPECT_TRUE(lost.stop_requested());
  EXPECT_EQ(listener->leases_of(event_kind::lost), std::vector{1U});
  listener->let_go();
  lease next = mutex(session, "m").acquire();
  EXPECT_EQ(next.release(), std::error_code{});
  EXPECT_EQ(listener->leases_of(event_kind::lost), std::vector{1U});
}

TEST_F(unnoticed_end, is_a_loss_also_where_the_release_does_not_reach_the_store) {
  lease held = mutex(session, "m").acquire();
  script->set(holdfast::store::permits_verb::release, holdfast::testing::fault::drop_request);
  pass_the_lease();
  EXPECT_EQ(held.release(), holdfast::errc::lost);
  EXPECT_EQ(listener->leases_of(event_kind::lost), std::vector{1U});
  EXPECT_EQ(listener->leases_of(event_kind::release_failed), std::vector<unsigned>{});
}

TEST_F(unnoticed_end, counts_all_readers_when_the_first_of_them_leaves) {
  holdfast::shared_mutex m{session, "m"};
  std::vector<lease> readers;
  for (int i = 0; i < 3; ++i) readers.push_back(m.acquire_shared());
  pass_the_lease();
  for (auto& r : readers) EXPECT_EQ(r.release(), holdfast::errc::lost);
  EXPECT_EQ(listener->leases_of(event_kind::lost), std::vector{3U});
}

TEST_F(unnoticed_end, is_thrown_by_with_lock_also_where_the_store_is_away) {
  mutex m{session, "m"};
  script->set(holdfast::store::permits_verb::release, holdfast::testing::fault::drop_request);
  const auto outcome = harness::outcome_of([&] { with_lock(m, [&] { pass_the_lease(); }); });
  EXPECT_EQ(outcome.reason, holdfast::errc::lost) << outcome.text;
}

TEST_F(unnoticed_end, of_one_of_two_locks_is_reported_before_any_other_failure) {
  const holdfast::session other = holdfast::open("memory:other", {.clock = clock});
  mutex next{session, "m", {.lease = holdfast::max_lease}};
  mutex old{other, "m", {.renew = false}};
  auto held = holdfast::both<mutex, mutex>{old, next}.acquire();
  script->set(holdfast::store::permits_verb::release, holdfast::testing::fault::drop_request);
  pass_the_lease();
  EXPECT_EQ(held.release(), holdfast::errc::lost);
}

TEST_F(unnoticed_end, of_one_of_several_locks_is_reported_before_any_other_failure) {
  const holdfast::session other = holdfast::open("memory:other", {.clock = clock});
  mutex first{session, "m"}, second{other, "m"};
  auto held = holdfast::multi_lock{first, second}.acquire();
  (void)holdfast::open("memory:other", {.clock = clock}).force_release("m");
  script->set(holdfast::store::permits_verb::release, holdfast::testing::fault::drop_request);
  EXPECT_EQ(held.release(), holdfast::errc::lost);
}

TEST_F(unnoticed_end, is_reported_at_the_release_of_a_lingering_lock) {
  mutex m{session, "m", {.linger = 1h}};
  lease held = m.acquire();
  pass_the_lease();
  EXPECT_EQ(held.release(), holdfast::errc::lost);
  EXPECT_EQ(listener->leases_of(event_kind::lost), std::vector{1U});
  EXPECT_TRUE(session.show("m").holders.empty()) << "what was lost does not linger";
}

TEST_F(unnoticed_end, of_an_idle_lock_does_not_give_out_the_lost_lease) {
  mutex m{session, "m", {.linger = 1h}};
  m.lock(), m.unlock();
  pass_the_lease();
  const auto got = m.try_acquire();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->state(), lease_state::held);
}

}  // namespace
