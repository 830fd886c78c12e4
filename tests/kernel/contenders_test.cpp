#include "family/contenders.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

// Every queue of up to six contenders, left in every order. There are never too many holders, and a
// contender that is woken only by the one that it watches never misses its turn.
namespace {

using holdfast::family::alone;
using holdfast::family::decide;
using holdfast::family::decision;
using holdfast::family::line;
namespace store = holdfast::store;
using store::contender;
using decider = std::function<decision(const line&, std::size_t me, std::uint32_t capacity)>;

constexpr std::size_t most = 6;

contender of_weight(std::uint64_t id, std::uint32_t weight) {
  contender c;
  c.owner = {0, id + 1};
  c.weight = weight;
  return c;
}

line of_weights(const std::vector<std::uint32_t>& weights) {
  line all;
  for (const auto w : weights) all.push_back(of_weight(all.size(), w));
  return all;
}

/// What went wrong, over all orders of departure.
struct findings {
  int too_many = 0;
  int missed_turns = 0;
  int revoked = 0;
  std::size_t most_woken = 0;
};

/// What one contender knows, from its last query.
struct mind {
  bool holds = false;
  std::set<std::uint64_t> watches;
};

class model {
 public:
  model(std::uint32_t capacity, decider d) : capacity_(capacity), decide_(std::move(d)) {}

  findings explore(const line& all) {
    std::vector<mind> minds(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) look(all, i, minds);
    leave_one(all, minds);
    return found_;
  }

 private:
  void look(const line& now, std::size_t at, std::vector<mind>& minds) {
    const auto d = decide_(now, at, capacity_);
    mind& m = minds[now[at].owner.low - 1];
    if (m.holds && !d.mine) ++found_.revoked;
    m.holds = d.mine;
    m.watches.clear();
    for (const auto w : d.watch) m.watches.insert(now[w].owner.low);
  }

  void judge(const line& now, const std::vector<mind>& minds) {
    std::uint64_t held = 0;
    for (std::size_t i = 0; i < now.size(); ++i) {
      const bool holds = minds[now[i].owner.low - 1].holds;
      held += holds ? now[i].weight : 0;
      if (!holds && decide(now, i, capacity_).mine) ++found_.missed_turns;
    }
    if (held > capacity_) ++found_.too_many;
  }

  // Any contender may leave next: a holder that is done, or a waiter that gives up.
  void leave_one(const line& now, const std::vector<mind>& minds) {
    judge(now, minds);
    for (std::size_t gone = 0; gone < now.size(); ++gone) {
      line next = now;
      next.erase(next.begin() + static_cast<std::ptrdiff_t>(gone));
      auto after = minds;
      std::size_t woken = 0;
      for (std::size_t i = 0; i < next.size(); ++i) {
        if (!after[next[i].owner.low - 1].watches.contains(now[gone].owner.low)) continue;
        ++woken;
        look(next, i, after);
      }
      found_.most_woken = std::max(found_.most_woken, woken);
      leave_one(next, after);
    }
  }

  const std::uint32_t capacity_;
  const decider decide_;
  findings found_;
};

const decider ours = [](const line& l, std::size_t me, std::uint32_t capacity) {
  return decide(l, me, capacity);
};

/// Calls with every queue of these weights of up to six.
void for_each_line(const std::vector<std::uint32_t>& weights,
                   const std::function<void(const line&)>& call) {
  std::function<void(std::vector<std::uint32_t>)> grow = [&](std::vector<std::uint32_t> so_far) {
    if (!so_far.empty()) call(of_weights(so_far));
    if (so_far.size() == most) return;
    for (const auto w : weights) {
      so_far.push_back(w);
      grow(so_far);
      so_far.pop_back();
    }
  };
  grow({});
}

void expect_sound(std::uint32_t capacity, const std::vector<std::uint32_t>& weights) {
  for_each_line(weights, [&](const line& l) {
    const auto found = model(capacity, ours).explore(l);
    ASSERT_EQ(found.too_many, 0);
    ASSERT_EQ(found.missed_turns, 0);
    ASSERT_EQ(found.revoked, 0);
  });
}

TEST(contenders, an_exclusive_lock_is_held_by_one_and_no_wake_up_is_lost) { expect_sound(1, {1}); }
TEST(contenders, a_semaphore_lets_in_as_many_as_fit_and_no_wake_up_is_lost) {
  for (const std::uint32_t capacity : {2U, 3U, 5U}) expect_sound(capacity, {1});
  expect_sound(3, {1, 2, 3});
}
TEST(contenders, readers_and_writers_never_mix_and_no_wake_up_is_lost) {
  constexpr std::uint32_t all = 1U << 30;
  expect_sound(all, {1, all});
}

TEST(contenders, a_semaphore_that_watches_one_node_loses_a_wake_up) {
  const decider one_only = [](const line& l, std::size_t me, std::uint32_t capacity) {
    auto d = decide(l, me, capacity);
    if (d.watch.size() > 1) d.watch.erase(d.watch.begin(), d.watch.end() - 1);
    return d;
  };
  EXPECT_GT(model(2, one_only).explore(of_weights({1, 1, 1})).missed_turns, 0);
  EXPECT_EQ(model(2, ours).explore(of_weights({1, 1, 1})).missed_turns, 0);
}

TEST(contenders, no_departure_wakes_more_than_one_exclusive_waiter) {
  EXPECT_EQ(model(1, ours).explore(line(of_weights({1, 1, 1, 1, 1, 1}))).most_woken, 1U);
}

TEST(contenders, no_contender_is_watched_whose_end_would_give_no_turn) {
  // Of six that want one of two: the last two ahead, never those that go first.
  EXPECT_EQ(decide(of_weights({1, 1, 1, 1, 1, 1}), 5, 2).watch, (std::vector<std::size_t>{3, 4}));
}

TEST(contenders, a_reader_watches_the_nearest_writer_and_a_writer_the_one_before_it) {
  constexpr std::uint32_t all = 1U << 30;
  const line l = of_weights({all, 1, all, 1, 1, all});
  EXPECT_EQ(decide(l, 1, all).watch, (std::vector<std::size_t>{0}));
  EXPECT_EQ(decide(l, 2, all).watch, (std::vector<std::size_t>{1}));
  EXPECT_EQ(decide(l, 4, all).watch, (std::vector<std::size_t>{2}));
  EXPECT_EQ(decide(l, 5, all).watch, (std::vector<std::size_t>{4}));
}

TEST(contenders, the_first_in_the_queue_has_position_one) {
  const line l = of_weights({1, 1, 1, 1});
  EXPECT_EQ(decide(l, 2, 2).position, 1U);
  EXPECT_EQ(decide(l, 3, 2).position, 2U);
}

TEST(contenders, one_of_another_kind_or_capacity_stands_in_the_way_whatever_its_weight) {
  line l = of_weights({1, 1, 1});
  for (contender& c : l) c.kind = store::kind::semaphore, c.capacity = 3;
  EXPECT_TRUE(decide(l, 2, 3).mine);
  l[1].kind = store::kind::shared_mutex;
  EXPECT_FALSE(decide(l, 2, 3).mine) << "it holds as soon as the first has left";
  EXPECT_EQ(decide(l, 2, 3).watch, (std::vector<std::size_t>{1}));
  l[1] = l[0], l[1].capacity = 2;
  EXPECT_FALSE(decide(l, 2, 3).mine);
  l[1].owner = {};
  EXPECT_TRUE(decide(l, 2, 3).mine) << "a contender of another program has only a weight";
  l[1].kind = store::kind::latch;
  EXPECT_FALSE(decide(l, 2, 3).mine) << "the record of a latch";
}

TEST(contenders, only_a_reader_without_others_beside_it_becomes_alone) {
  constexpr std::uint32_t all = 1U << 30;
  line l = of_weights({1, 1, all});
  l[2].owner = l[0].owner;
  EXPECT_FALSE(alone(l, 0, 2)) << "another reader is in";
  l[1].weight = all;
  EXPECT_FALSE(alone(l, 0, 2)) << "a writer waits between, with a smaller fence";
  l[1].owner = l[0].owner;
  EXPECT_TRUE(alone(l, 0, 2)) << "its own second node, which an earlier request made";
  l.push_back(of_weight(7, 1));
  EXPECT_FALSE(decide(l, 3, all).mine) << "a later contender waits";
  EXPECT_TRUE(alone(l, 0, 2));
  const line behind = of_weights({1, 1, all});
  EXPECT_FALSE(alone(behind, 1, 2)) << "another is at the front";
  line strangers = of_weights({1, 1, all});
  for (contender& c : strangers) c.owner = {};
  EXPECT_FALSE(alone(strangers, 0, 2)) << "nobody knows whose they are";
}

TEST(contenders, a_reader_behind_a_waiting_writer_keeps_one_from_being_alone) {
  constexpr std::uint32_t all = 1U << 30;
  line l = of_weights({1, all, 1, all});
  l[3].owner = l[0].owner;
  EXPECT_FALSE(decide(l, 2, all).mine) << "it waits behind the writer";
  EXPECT_FALSE(alone(l, 0, 3)) << "if the writer gives up, it comes in";
}

/// Calls with the rest of a queue after each departure of others than that contender, and after all
/// that can follow it: the order in which they left does not matter any more.
void for_each_future(const line& now, const store::owner_id& stays,
                     const std::function<void(const line&)>& call) {
  for (unsigned gone = 0; gone < 1U << now.size(); ++gone) {
    line left;
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (now[i].owner == stays || (gone >> i & 1U) == 0) left.push_back(now[i]);
    }
    call(left);
  }
}

// Every queue, every holder in it that takes a second entry at its end, and every departure (and
// one arrival) after that.
void expect_alone_for_good(std::uint32_t capacity, const std::vector<std::uint32_t>& weights) {
  int upgrades = 0;
  for_each_line(weights, [&](const line& before) {
    for (std::size_t first = 0; first < before.size(); ++first) {
      if (!decide(before, first, capacity).mine) break;
      line l = before;
      l.push_back(of_weight(0, capacity));
      l.back().owner = l[first].owner;
      const std::size_t raised = l.size() - 1;
      bool stays = true;
      for (const auto late : weights) {
        line with_late = l;
        with_late.push_back(of_weight(most + 1, late));
        for_each_future(with_late, l[first].owner, [&](const line& later) {
          for (std::size_t i = 0; i < later.size(); ++i) {
            if (later[i].owner == l[first].owner) continue;
            stays = stays && !decide(later, i, capacity).mine;
          }
        });
      }
      // Each that waits between the two would be the next holder, with a smaller fence.
      const bool between = raised > 1;
      ASSERT_EQ(alone(l, first, raised), stays && !between) << "neither more nor fewer";
      upgrades += stays && !between ? 1 : 0;
    }
  });
  EXPECT_GT(upgrades, 0);
}

TEST(contenders, a_holder_that_has_become_alone_stays_so_while_others_leave_and_come) {
  constexpr std::uint32_t all = 1U << 30;
  expect_alone_for_good(all, {1, all});
  expect_alone_for_good(3, {1, 2, 3});
}

}  // namespace
