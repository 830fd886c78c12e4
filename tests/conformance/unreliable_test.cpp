#include <thread>

#include "conformance/cell.hpp"
#include "conformance/exclusive.hpp"
#include "conformance/fault_script.hpp"
#include "harness/eventually.hpp"
#include "harness/history.hpp"
#include "harness/seed.hpp"

// Crowds over stores that lose one command in ten, at random, in every possible way.
namespace conformance {
namespace {

using namespace std::chrono_literals;
using holdfast::lease;
using holdfast::testing::fault;
using verb = holdfast::store::permits_verb;

constexpr std::uint32_t threads_count = 8;
constexpr int rounds = 8;

class unreliable : public suite {
 protected:
  holdfast::session faulty(std::uint64_t stream) const {
    return another({.decorate = holdfast::testing::faulty(
                        holdfast::testing::random_faults({.seed = harness::random(stream).bits(),
                                                          .drop_request = 30,
                                                          .drop_reply = 30,
                                                          .duplicate = 30,
                                                          .drop_notification = 30}))});
  }

  /// This many threads, on two sessions, each hold something for a moment, again and again.
  std::vector<harness::hold_event> crowd(
      const std::function<lease(std::uint32_t worker, holdfast::session s)>& acquire,
      const std::function<std::uint32_t(std::uint32_t worker)>& weight) const {
    std::atomic<std::uint64_t> ticks{0};
    std::vector<std::vector<harness::hold_event>> parts(threads_count);
    std::vector<std::thread> threads;
    const std::array<holdfast::session, 2> sessions{faulty(1), faulty(2)};
    for (std::uint32_t i = 0; i < threads_count; ++i) {
      threads.emplace_back([&, i] {
        for (int round = 0; round < rounds; ++round) {
          const lease held = acquire(i, sessions[i % 2]);
          const auto begin = ++ticks;
          std::this_thread::yield();
          parts[i].push_back({.begin = begin,
                              .end = ++ticks,
                              .worker = i,
                              .fence = held.fence(),
                              .weight = weight(i)});
        }
      });
    }
    for (auto& t : threads) t.join();
    std::vector<harness::hold_event> history;
    for (const auto& p : parts) history.insert(history.end(), p.begin(), p.end());
    return history;
  }

  void expect_correct(const std::vector<harness::hold_event>& history, std::uint32_t capacity,
                      bool readers_share = false) {
    EXPECT_EQ(history.size(), std::size_t{threads_count} * rounds);
    const auto wrong =
        harness::violations(history, {.capacity = capacity, .readers_share = readers_share});
    EXPECT_TRUE(wrong.empty()) << harness::summary(wrong);
    until_free();
  }
};

INSTANTIATE_TEST_SUITE_P(stores, unreliable,
                         testing::ValuesIn(cells({"mutex", "lingering_mutex", "fair_mutex",
                                                  "shared_mutex", "semaphore"})),
                         cell_name);

TEST_P(unreliable, stores_still_let_one_holder_in_at_a_time) {
  const auto history = crowd(
      [&](std::uint32_t, holdfast::session s) {
        return make_exclusive(GetParam().primitive, s, name_)->acquire();
      },
      [](std::uint32_t) { return 1; });
  expect_correct(history, 1);
}

class unreliable_permits : public unreliable {};
INSTANTIATE_TEST_SUITE_P(stores, unreliable_permits, testing::ValuesIn(cells({"semaphore"})),
                         cell_name);

TEST_P(unreliable_permits, stores_never_grant_more_permits_than_exist) {
  const auto weight = [](std::uint32_t worker) { return 1 + worker % 3; };
  const auto history = crowd(
      [&](std::uint32_t worker, holdfast::session s) {
        return holdfast::semaphore(s, name_, 4).acquire(weight(worker));
      },
      weight);
  expect_correct(history, 4);
}

class unreliable_sharing : public unreliable {};
INSTANTIATE_TEST_SUITE_P(stores, unreliable_sharing, testing::ValuesIn(cells({"shared_mutex"})),
                         cell_name);

TEST_P(unreliable_sharing, stores_never_mix_readers_and_writers) {
  constexpr std::uint32_t all = 1u << 30;
  const auto weight = [](std::uint32_t worker) { return worker % 4 == 0 ? all : 1; };
  const auto history = crowd(
      [&](std::uint32_t worker, holdfast::session s) {
        holdfast::shared_mutex lock{s, name_};
        return weight(worker) == all ? lock.acquire() : lock.acquire_shared();
      },
      weight);
  expect_correct(history, all, true);
}

// The store and the program agree about a hold after each change, and nothing stays of a request
// that was carried out twice.
TEST_P(unreliable_sharing, a_change_of_mode_with_a_lost_answer_is_made_once_and_reported) {
  const fault_script script;
  const auto s = another({.decorate = holdfast::testing::faulty(script.plan())});
  holdfast::shared_mutex lock{s, name_, {of_row(), {}}}, rival{here_, name_, {of_row(), {}}};
  int met = 0;
  for (const fault f : {fault::drop_reply, fault::duplicate}) {
    lease held = lock.acquire_shared();
    const auto fence = held.fence();
    script.next(verb::resize, f);
    EXPECT_TRUE(lock.try_upgrade(held));
    EXPECT_GT(held.fence(), fence);
    EXPECT_FALSE(rival.try_acquire_shared());
    script.next(verb::resize, f);
    lock.downgrade(held);
    EXPECT_EQ(script.met(), met += 2);
    EXPECT_FALSE(rival.try_acquire());
    EXPECT_TRUE(now_had([&] { return rival.try_acquire_shared().has_value(); }));
    EXPECT_NO_THROW(held.check());
    EXPECT_FALSE(held.release());
    EXPECT_TRUE(now_had([&] { return rival.try_acquire().has_value(); }));
    until_free();
  }
}

class unreliable_latch : public unreliable {};
INSTANTIATE_TEST_SUITE_P(stores, unreliable_latch, testing::ValuesIn(cells({"latch"})), cell_name);

TEST_P(unreliable_latch, an_arrival_whose_reply_was_lost_counts_once) {
  const fault_script script;
  const auto session = another({.decorate = holdfast::testing::faulty(script.plan())});
  holdfast::latch three{session, name_, 3};
  script.next(verb::acquire, fault::drop_reply, 2);
  three.count_down();
  EXPECT_EQ(three.remaining(), 2u);
  script.next(verb::acquire, fault::duplicate);
  three.count_down();
  EXPECT_EQ(three.remaining(), 1u);
  script.next(verb::acquire, fault::drop_request, 2);
  three.count_down();
  EXPECT_EQ(three.remaining(), 0u);
  EXPECT_EQ(script.met(), 5);
}

TEST_P(unreliable_latch, stores_count_every_arrival_once) {
  constexpr std::uint32_t arrivals = threads_count * rounds;
  holdfast::latch all{here_, name_, arrivals};
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < threads_count; ++i) {
    threads.emplace_back([&, i] {
      holdfast::latch mine{faulty(i), name_, arrivals};
      for (int round = 0; round < rounds; ++round) mine.count_down();
    });
  }
  all.wait();
  for (auto& t : threads) t.join();
  EXPECT_EQ(all.remaining(), 0u);
}

}  // namespace
}  // namespace conformance
