#include "harness/short_rules.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <holdfast/holdfast.hpp>
#include <thread>

#include "harness/concurrently.hpp"
#include "harness/eventually.hpp"

namespace harness {

namespace {

using namespace std::chrono_literals;

/// With letters of two and four bytes.
constexpr const char* note = "Grüße 😀";

/// Counts who is inside.
class room {
 public:
  explicit room(int capacity = 1) : capacity_(capacity) {}
  void visit(std::uint64_t fence) {
    EXPECT_LE(++inside_, capacity_) << "too many hold the lock";
    if (capacity_ == 1) {
      EXPECT_GT(fence, last_) << "a fence did not grow";
      last_ = fence;
    }
    ++visits_;
    for (int i = 0; i < 100; ++i) std::this_thread::yield();  // so that others may come in
    --inside_;
  }
  int visits() const { return visits_; }

 private:
  const int capacity_;
  std::atomic<int> inside_{0}, visits_{0};
  std::atomic<std::uint64_t> last_{0};
};

using sessions = std::vector<holdfast::session>;

/// A thread for each session does it, a few times.
template <class Job>
void each_at_once(const sessions& all, Job job) {
  constexpr int times = 4;
  std::vector<std::future<void>> threads;
  for (const auto& s : all) {
    threads.push_back(concurrently([&s, &job] {
      for (int i = 0; i < times; ++i) job(s);
    }));
  }
  for (auto& t : threads) t.get();
}

void expect_exclusion(const sessions& all) {
  room inside;
  each_at_once(all, [&](const holdfast::session& s) {
    holdfast::mutex m{s, "exclusion", {.reason = note}};
    auto held = m.acquire();
    inside.visit(held.fence());
    EXPECT_FALSE(held.release());
  });
  EXPECT_EQ(inside.visits(), 4 * static_cast<int>(all.size()));
}

// Each session asks while each other one holds the lock: they agree about the time, too.
void expect_refusals(const sessions& all) {
  std::uint64_t last = 0;
  for (const auto& s : all) {
    holdfast::mutex m{s, "refusal"};
    auto held = m.try_acquire();
    ASSERT_TRUE(held) << "it is free";
    EXPECT_GT(held->fence(), last);
    last = held->fence();
    for (const auto& other : all) {
      EXPECT_FALSE(holdfast::mutex(other, "refusal").try_acquire()) << "it is held";
    }
    held->extend(10s);
    EXPECT_FALSE(held->release());
  }
}

void expect_hand_over(const holdfast::session& from, const holdfast::session& to) {
  holdfast::mutex first{from, "hand-over", {.reason = note}}, second{to, "hand-over"};
  auto held = first.acquire();
  auto next = concurrently([&] { return second.acquire(); });
  eventually("a waiter", [&] { return from.show("hand-over").waiters.size() == 1; });
  const auto seen = to.show("hand-over");
  ASSERT_EQ(seen.holders.size(), 1);
  EXPECT_EQ(seen.holders[0].reason, note);
  EXPECT_FALSE(held.release());
  EXPECT_GT(next.get().fence(), held.fence());
}

void expect_several_at_once(const sessions& all) {
  room one, other;
  each_at_once(all, [&](const holdfast::session& s) {
    holdfast::mutex a{s, "one"}, b{s, "other"};
    auto held = holdfast::multi_lock{a, b}.acquire();
    one.visit(held.fences()[0]);
    other.visit(held.fences()[1]);
    EXPECT_FALSE(held.release());
    auto alone = b.acquire();
    other.visit(alone.fence());
    EXPECT_FALSE(alone.release());
  });
}

void expect_permits(const sessions& all) {
  room inside{2};
  each_at_once(all, [&](const holdfast::session& s) {
    holdfast::semaphore two{s, "permits", 2};
    auto held = two.acquire();
    inside.visit(held.fence());
    EXPECT_FALSE(held.release());
  });
}

// A day brings one token back.
void expect_tokens(const sessions& all) {
  static std::atomic<int> number{0};
  const std::string name = "tokens" + std::to_string(++number);
  int taken = 0;
  for (int round = 0; round < 3; ++round) {
    for (const auto& s : all) {
      for (const auto* who : {"ü", "😀"}) {
        holdfast::rate_limiter l{
            s, name, {{.tokens = 1, .per = 24h, .burst = 2, .by = {"who"}, .name = "a"}}};
        taken += l.try_take(1, {{"who", who}}) ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(taken, 4) << "two for each";
}

}  // namespace

void expect_short_rules(const std::vector<std::string>& urls, bool all) {
  sessions made;
  for (const auto& url : urls) made.push_back(holdfast::open(url));
  expect_exclusion(made);
  expect_refusals(made);
  if (!all) return;
  expect_hand_over(made.front(), made.back());
  expect_several_at_once(made);
  expect_permits(made);
  expect_tokens(made);
}

}  // namespace harness
