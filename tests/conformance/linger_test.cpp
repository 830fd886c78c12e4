#include <atomic>
#include <thread>

#include "conformance/cell.hpp"
#include "harness/eventually.hpp"

// An idle lock that stays with its process (lock_options::linger): on every store another process
// that wants it gets it, though no time has run out.
namespace conformance {
namespace {

using namespace std::chrono_literals;
using holdfast::mutex;

class lingering : public suite {
 protected:
  static holdfast::lock_options for_an_hour() {
    holdfast::lock_options o;
    o.linger = 1h;
    return o;
  }
  mutex lock_{here_, name_, for_an_hour()};
};

INSTANTIATE_TEST_SUITE_P(stores, lingering, testing::ValuesIn(cells({"lingering_mutex"})),
                         cell_name);

TEST_P(lingering, an_idle_lock_is_reacquired_without_the_store) {
  {
    const std::lock_guard first{lock_};
  }
  const auto before = here_.store_operations();
  std::uint64_t last = 0;
  for (int i = 0; i < 100; ++i) {
    const std::lock_guard guard{lock_};
    EXPECT_GT(lock_.fence(), last);
    last = lock_.fence();
  }
  EXPECT_EQ(here_.store_operations(), before);
  EXPECT_EQ(holders(), 1U);
}

TEST_P(lingering, the_lock_passes_back_and_forth_between_two_sessions) {
  auto session = another();
  mutex rival{session, name_, for_an_hour()};
  std::uint64_t last = 0;
  for (int i = 0; i < 10; ++i) {
    for (mutex* m : {&lock_, &rival}) {
      const std::lock_guard guard{*m};
      EXPECT_GT(m->fence(), last);
      last = m->fence();
    }
  }
}

TEST_P(lingering, a_session_that_tries_twice_acquires_an_idle_lock) {
  {
    const std::lock_guard first{lock_};
  }
  auto session = another();
  mutex rival{session, name_};
  harness::eventually("a try succeeds", [&] { return rival.try_lock(); });
}

TEST_P(lingering, threads_of_several_sessions_are_never_inside_together) {
  auto session = another();
  mutex rival{session, name_, for_an_hour()};
  holdfast::fair_mutex queues{session, name_};
  std::atomic<int> inside{0};
  long entered = 0;  // not atomic: only the lock protects it
  constexpr int rounds = 50;
  std::vector<std::thread> crew;
  for (mutex* m : {&lock_, &lock_, &rival, &rival, static_cast<mutex*>(&queues)}) {
    crew.emplace_back([&, m] {
      for (int i = 0; i < rounds; ++i) {
        const std::lock_guard guard{*m};
        EXPECT_EQ(++inside, 1);
        (void)here_.show(name_);  // time for another thread to come in
        ++entered, --inside;
      }
    });
  }
  for (auto& t : crew) t.join();
  EXPECT_EQ(entered, 5 * rounds);
}

TEST_P(lingering, an_idle_lock_is_released_after_its_linger_time) {
  auto session = another();
  holdfast::lock_options shortly;
  shortly.linger = 1ms;
  mutex m{session, name_, shortly};
  {
    const std::lock_guard guard{m};
  }
  until_free();
}

}  // namespace
}  // namespace conformance
