#include <gtest/gtest.h>

#include <array>
#include <new>
#include <system_error>
#include <tuple>

#include "exhaustion/forms.hpp"

// Holds and their events where there is no memory for the end or the change of a hold.
namespace exhaustion {
namespace {

using holdfast::errc;
using holdfast::event_kind;
using holdfast::lease;
using verb = holdfast::store::permits_verb;
using fault = holdfast::testing::fault;

/// Counts without memory.
class tally final : public holdfast::observer {
 public:
  void on_event(const holdfast::event& e) override { ++of_[static_cast<std::size_t>(e.kind)]; }
  int count(event_kind kind) const { return of_[static_cast<std::size_t>(kind)]; }

 private:
  std::array<std::atomic<int>, 32> of_{};
};

struct scene {
  holdfast::session_options options() {
    holdfast::session_options o;
    o.clock = clock;
    o.observer = told;
    o.lock_order = true;  // the holds of a thread are recorded, which takes memory
    holdfast::testing::fault_plan plan;
    plan.choose = [this](auto, auto, auto v) {
      return v == verb::release ? releases.load() : fault::none;
    };
    o.decorate = holdfast::testing::faulty(plan, clock);
    return o;
  }
  std::shared_ptr<holdfast::testing::fake_clock> clock =
      std::make_shared<holdfast::testing::fake_clock>();
  std::shared_ptr<tally> told = std::make_shared<tally>();
  std::atomic<fault> releases{fault::none};
  holdfast::session session = holdfast::open("memory:", options());
};

/// The error of `call`, if any; and whether there was memory enough.
template <class Call>
std::pair<bool, bool> carried_out_with(long allocations, Call call) {
  const no_memory_after now(allocations, of::this_thread);
  bool carried_out = false;
  try {
    carried_out = call();
  } catch (const holdfast::error&) {
  } catch (const std::bad_alloc&) {
  }
  return {carried_out, !no_memory_after::failed()};
}

/// Held, or lost and reported; never released silently.
void expect_mine(const holdfast::shared_mutex& lock) {
  try {
    lock.check();
  } catch (const holdfast::error& e) {
    EXPECT_EQ(e.reason(), errc::lost) << e.what();
  }
}

struct change_of_the_mode : testing::Test {
  scene s;
  holdfast::shared_mutex lock{s.session, "a name that is too long to need no memory"};

  void expect_as_before() {
    EXPECT_EQ(s.told->count(event_kind::misuse), 0) << "what was unlocked was not held";
    s.clock->advance(2min);
    EXPECT_TRUE(lock.try_acquire());
  }
};

TEST_F(change_of_the_mode, without_memory_leaves_a_writer_its_hold) {
  bool enough = false;
  for (int n = 0; !enough && !HasFailure(); ++n) {
    SCOPED_TRACE(n);
    bool changed = false;
    lock.lock();
    std::tie(changed, enough) = carried_out_with(n, [&] { return lock.downgrade(), true; });
    expect_mine(lock);
    changed ? lock.unlock_shared() : lock.unlock();
    expect_as_before();
  }
}

TEST_F(change_of_the_mode, without_memory_leaves_a_reader_its_hold) {
  bool enough = false;
  for (int n = 0; !enough && !HasFailure(); ++n) {
    SCOPED_TRACE(n);
    bool changed = false;
    lock.lock_shared();
    std::tie(changed, enough) = carried_out_with(n, [&] { return lock.try_upgrade(); });
    expect_mine(lock);
    changed ? lock.unlock() : lock.unlock_shared();
    expect_as_before();
  }
}

TEST(release_of_several, without_memory_reports_the_outcome_of_each) {
  scene s;
  holdfast::mutex one{s.session, "one"};
  holdfast::semaphore permits{s.session, "permits", 3};
  holdfast::multi_lock all{one, permits};
  for (int n = 0; n < 12; ++n) {
    SCOPED_TRACE(n);
    holdfast::multi_lease mine = all.acquire();
    bool enough = false;
    std::error_code how;
    {
      const no_memory_after now(n, of::this_thread);
      how = mine.release();
      enough = !no_memory_after::failed();
    }
    if (how) EXPECT_EQ(how, errc::overloaded);
    if (enough) EXPECT_FALSE(how);
    s.clock->advance(2min);
    EXPECT_TRUE(all.try_acquire());
  }
}

// The store is away, and then there is no memory for the error's text.
struct release_of_a_majority : testing::Test {};

TEST_F(release_of_a_majority, that_fails_is_reported_once) {
  scene s;
  holdfast::redlock most{
      {s.session}, "a name that is too long to need no memory", {.node_timeout = 1h}};
  bool enough = false;
  for (int n = 0; !enough && !HasFailure(); ++n) {
    SCOPED_TRACE(n);
    auto mine = most.acquire();
    s.releases = fault::drop_request;
    const int before = s.told->count(event_kind::release_failed);
    {
      const no_memory_after now(n, of::others);
      const enough_memory here;
      (void)async_release(std::move(mine)).future().get();
      enough = !no_memory_after::failed();
    }
    EXPECT_EQ(s.told->count(event_kind::release_failed), before + 1);
    s.releases = fault::none;
    harness::eventually("it is free", [&] {
      s.clock->advance(100ms);
      return most.try_acquire().has_value();
    });
  }
}

}  // namespace
}  // namespace exhaustion
