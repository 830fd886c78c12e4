#include <algorithm>
#include <thread>

#include "conformance/cell.hpp"
#include "conformance/exclusive.hpp"
#include "harness/eventually.hpp"
#include "harness/history.hpp"
#include "harness/seed.hpp"
#include "harness/turns.hpp"

// Order of arrival, where it is promised: a waiter that was seen in the queue before another one
// asked is served first, whatever threads and sessions they use.
namespace conformance {
namespace {

using namespace std::chrono_literals;
using holdfast::lease;

// A grant whose notification was lost passes on, so the order is promised only where notifications
// arrive.
std::vector<cell> cells_that_keep_order() {
  auto all = cells({"fair_mutex", "semaphore", "shared_mutex"});
  std::erase_if(all, [](const cell& c) { return static_cast<bool>(c.store.faults); });
  return all;
}

class order_of_arrival : public suite {
 protected:
  std::unique_ptr<exclusive> make(holdfast::session s, const std::string& reason) const {
    return make_exclusive(GetParam().primitive, std::move(s), name_, {.reason = reason});
  }
};

INSTANTIATE_TEST_SUITE_P(stores, order_of_arrival, testing::ValuesIn(cells_that_keep_order()),
                         cell_name);

TEST_P(order_of_arrival, holds_across_threads_and_sessions) {
  constexpr std::uint32_t count = 20;
  std::atomic<std::uint64_t> ticks{0};
  std::vector<harness::hold_event> history(count);
  std::vector<std::thread> threads;
  const std::array<holdfast::session, 3> sessions{here_, another(), another()};
  harness::turns served{claim_us()};
  lease first = make(here_, "first")->acquire();
  for (std::uint32_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      auto& mine = history[i];
      mine.worker = i;
      mine.asked = ++ticks;
      const lease held = make(sessions[i % 3], std::to_string(i))->acquire();
      mine.begin = ++ticks;
      served.next(i);
      mine.fence = held.fence();
      std::this_thread::yield();
      mine.end = ++ticks;
    });
    until_waiting(i + 1);
    history[i].queued = ++ticks;
  }
  EXPECT_EQ(here_.show(name_).waiters.at(7).reason, "7");
  served.begin();
  first = {};
  for (auto& t : threads) t.join();
  EXPECT_LE(served.out_of_order(), served.too_late());
  const auto wrong = harness::violations(history, {.fair = served.too_late() == 0});
  EXPECT_TRUE(wrong.empty()) << harness::summary(wrong);
}

TEST_P(order_of_arrival, does_not_change_when_other_waiters_give_up) {
  constexpr std::uint32_t count = 12;
  harness::turns served{claim_us()};
  std::vector<std::stop_source> stops(count);
  std::vector<std::thread> threads;
  lease first = make(here_, "first")->acquire();
  const auto rival = another();
  for (std::uint32_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      const auto held =
          make(i % 2 == 0 ? here_ : rival, "")->try_acquire_for(1h, stops[i].get_token());
      if (held) served.next(i);
    });
    until_waiting(i + 1);
  }
  std::vector<std::size_t> expected;
  std::uint32_t left = count;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (i % 3 == 0) {
      stops[i].request_stop();
      until_waiting(--left);
    } else {
      expected.push_back(i);
    }
  }
  served.begin();
  first = {};
  for (auto& t : threads) t.join();
  EXPECT_LE(served.out_of_order(), served.too_late());
  auto all = served.order();
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, expected);
}

}  // namespace
}  // namespace conformance
