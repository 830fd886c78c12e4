#include <thread>

#include "conformance/cell.hpp"
#include "conformance/events.hpp"
#include "conformance/exclusive.hpp"
#include "conformance/fault_script.hpp"
#include "harness/eventually.hpp"

// unlock() that does not wait for the store's answer (lock_options::unconfirmed_release): the next
// holder, here or elsewhere, sees no difference.
namespace conformance {
namespace {

class unconfirmed : public suite {
 protected:
  std::unique_ptr<exclusive> make(holdfast::session s) const {
    holdfast::lock_options o;
    o.unconfirmed_release = true;
    return make_exclusive(GetParam().primitive, std::move(s), name_, o);
  }
  std::unique_ptr<exclusive> lock_ = make(here_);
};

INSTANTIATE_TEST_SUITE_P(
    stores, unconfirmed,
    testing::ValuesIn(cells({"mutex", "fair_mutex", "shared_mutex", "semaphore"})), cell_name);

TEST_P(unconfirmed, the_next_try_of_the_session_acquires_it_with_a_greater_fence) {
  std::uint64_t last = 0;
  for (int i = 0; i < 100; ++i) {
    const auto held = lock_->try_acquire();
    ASSERT_TRUE(held) << i;
    EXPECT_GT(held->fence(), last);
    last = held->fence();
  }
}

TEST_P(unconfirmed, threads_of_several_sessions_are_never_inside_together_and_all_get_in) {
  const auto rival = make(another());
  long inside = 0;  // not atomic: only the lock protects it
  std::uint64_t last = 0;
  constexpr int rounds = 50;
  std::vector<std::thread> crew;
  for (exclusive* e : {lock_.get(), lock_.get(), rival.get(), rival.get()}) {
    crew.emplace_back([&, e] {
      for (int i = 0; i < rounds; ++i) {
        const auto held = e->acquire();
        EXPECT_GT(held.fence(), last);
        last = held.fence();
        ++inside;
      }
    });
  }
  for (auto& t : crew) t.join();
  EXPECT_EQ(inside, 4 * rounds);
}

TEST_P(unconfirmed, a_lost_release_is_reported_and_repeated) {
  const auto told = std::make_shared<events>();
  const fault_script script;
  const auto rival =
      make(another({.observer = told, .decorate = holdfast::testing::faulty(script.plan())}));
  {
    const auto held = rival->acquire();
    script.next(fault_script::verb::release, fault_script::fault::drop_request);
  }
  EXPECT_TRUE(lock_->acquire());
  harness::eventually("it is told",
                      [&] { return told->count(holdfast::event_kind::release_failed) == 1; });
}

TEST_P(unconfirmed, nothing_is_left_when_the_session_has_ended) {
  {
    auto session = another();
    const auto rival = make(session);
    (void)rival->acquire();
  }
  expect_free();
  EXPECT_TRUE(now_had([&] { return lock_->try_acquire().has_value(); }));
}

}  // namespace
}  // namespace conformance
