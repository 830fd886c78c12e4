#include <gtest/gtest.h>
#include <holdfast/holdfast.hpp>
#include <holdfast/testing.hpp>
#include <set>

#include "store/memory/memory.hpp"

namespace {

using namespace std::chrono_literals;
using holdfast::lease;
using holdfast::mutex;

class writes_a_word final : public holdfast::store::transition {
 public:
  const std::string* apply(std::string_view, const holdfast::store::moment&) override {
    return &word_;
  }

 private:
  const std::string word_ = "word";
} writing;

TEST(memory_store, sessions_of_one_name_share_locks_and_unnamed_ones_do_not) {
  auto a = holdfast::open("memory:shared"), b = holdfast::open("memory:shared");
  lease held = mutex(a, "m").acquire();
  EXPECT_FALSE(mutex(b, "m").try_acquire());
  auto c = holdfast::open("memory:"), d = holdfast::open("memory:");
  lease own = mutex(c, "m").acquire();
  EXPECT_TRUE(mutex(d, "m").try_acquire());
}

TEST(memory_store, fences_grow_although_nothing_is_kept_of_a_free_name) {
  auto s = holdfast::open("memory:");
  mutex m{s, "m"};
  std::uint64_t last = 0;
  for (int i = 0; i < 1'000; ++i) {
    const auto fence = m.acquire().fence();
    ASSERT_GT(fence, last);
    last = fence;
  }
}

TEST(memory_store, forgets_an_unused_space) {
  {
    auto s = holdfast::open("memory:left");
    holdfast::latch l{s, "l", 2};
    l.count_down();
  }
  auto again = holdfast::open("memory:left");
  EXPECT_EQ(holdfast::latch(again, "l", 2).remaining(), 2U);
}

TEST(memory_store, judges_leases_by_the_clock_of_the_session) {
  holdfast::session_options options;
  const auto clock = std::make_shared<holdfast::testing::fake_clock>();
  options.clock = clock;
  auto s = holdfast::open("memory:", options);
  lease held = mutex(s, "m", {.lease = 1s, .renew = false}).acquire();
  clock->advance(2s);
  EXPECT_TRUE(s.show("m").holders.empty());
}

TEST(memory_store, a_walk_meets_every_record) {
  const auto store = holdfast::store::memory::open_memory("", holdfast::real_clock());
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(store->transact(std::to_string(i), writing));
  std::set<std::string> met;
  for (int i = 0; i < 200; ++i) {
    for (const auto& e : store->walk("", 3).value()) met.insert(e.name);
  }
  EXPECT_EQ(met.size(), 100U);
}

}  // namespace
