#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <holdfast/holdfast.hpp>
#include <thread>
#include <vector>

namespace harness {

/// Two sessions lock two names each, of which one is common: the second session gets neither of its
/// names. `meanwhile` runs while the first session holds both names.
inline void take_all_or_none(
    const std::function<holdfast::session()>& open,
    const std::function<void()>& meanwhile = [] {}) {
  auto a = open(), b = open();
  holdfast::mutex x{a, "x"}, y{a, "y"}, other_y{b, "y"}, z{b, "z"};
  holdfast::multi_lock both{y, x}, behind{other_y, z};
  auto held = both.acquire();
  meanwhile();
  EXPECT_FALSE(behind.try_acquire());
  EXPECT_TRUE(a.show("z").holders.empty());
  const auto fences = held.fences();
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(behind.try_acquire());
  EXPECT_GT(both.acquire().fences().front(), fences.front());
}

/// Threads with a session each lock two or three of four names, each in an order of its own: nobody
/// holds a name that another thread holds, nobody waits for ever, and at the end all names are
/// free.
inline void take_overlapping_names(const std::function<holdfast::session()>& open) {
  static constexpr std::array names{"a", "b", "c", "d"};
  static constexpr int rounds = 8;
  std::array<std::atomic<int>, names.size()> inside{};
  const auto work = [&](std::size_t me) {
    const auto session = open();
    std::vector<holdfast::multi_member> members;
    for (std::size_t i = 0; i < 2 + me % 2; ++i) {
      holdfast::mutex one(session, names[(2 * me + 3 - i) % names.size()]);
      members.emplace_back(one);
    }
    holdfast::multi_lock all(members);
    for (int round = 0; round < rounds; ++round) {
      const auto held = all.acquire();
      for (std::size_t i = 0; i < members.size(); ++i) {
        EXPECT_EQ(++inside[(2 * me + 3 - i) % names.size()], 1);
      }
      for (std::size_t i = 0; i < members.size(); ++i) {
        --inside[(2 * me + 3 - i) % names.size()];
      }
    }
  };
  std::vector<std::jthread> crew;
  for (std::size_t me = 0; me < 4; ++me) crew.emplace_back(work, me);
  crew.clear();
  EXPECT_TRUE(open().names().empty());
}

}  // namespace harness
