#include <gtest/gtest.h>

#include <future>
#include <set>

#include "harness/next_wake.hpp"
#include "harness/passing_on.hpp"
#include "stage.hpp"

namespace {

using namespace engine_test;
using holdfast::fair_mutex;
using holdfast::lease;
using holdfast::result;
using holdfast::store::permits_command;
using holdfast::store::permits_reply;

/// While the store is away: the owners that have asked.
struct absence {
  bool noted(const permits_command& c) {
    const std::lock_guard guard{mutex};
    if (away && c.verb == holdfast::store::permits_verb::acquire) asked.insert(c.owner);
    return away;
  }
  std::size_t known_to() {
    const std::lock_guard guard{mutex};
    return asked.size();
  }
  void set(bool is_away) {
    const std::lock_guard guard{mutex};
    away = is_away;
  }
  std::mutex mutex;
  bool away = false;
  std::set<holdfast::store::owner_id> asked;
};

class away_at_times final : public harness::passing_on {
 public:
  away_at_times(std::unique_ptr<session_store> inner, std::shared_ptr<absence> by)
      : passing_on(std::move(inner)), by_(std::move(by)) {}
  result<permits_reply> permits(std::string_view name, const permits_command& c) override {
    if (by_->noted(c)) return holdfast::failure{holdfast::errc::unavailable, "away"};
    return inner_->permits(name, c);
  }

 private:
  const std::shared_ptr<absence> by_;
};

// One waiter polls once a second for those far behind. When the poll fails, the queue entries of
// all may be lost.
TEST(joint_loss, makes_all_waiters_poll_after_the_store_was_away) {
  constexpr std::size_t many = 40;
  const auto store = std::make_shared<absence>();
  const auto clock = std::make_shared<holdfast::testing::fake_clock>();
  holdfast::session_options o;
  o.clock = clock;
  o.decorate = [&](auto inner) { return std::make_unique<away_at_times>(std::move(inner), store); };
  auto session = holdfast::open("memory:", o);
  fair_mutex m{session, "m"};
  lease held = m.acquire();
  std::vector<std::future<result<lease>>> waiting;
  for (std::size_t i = 1; i <= many; ++i) {
    waiting.push_back(async_acquire(m).future());
    harness::eventually("in line", [&] { return session.show("m").waiters.size() == i; });
  }
  const auto began = clock->now();
  store->set(true);
  harness::eventually("each has asked", [&] {
    harness::pass(*clock, 2ms);
    return store->known_to() == many;
  });
  EXPECT_LT(clock->now() - began, 20s) << "one a second is not all";
  store->set(false);
  EXPECT_FALSE(held.release());
  harness::eventually("each has had it", [&] {
    harness::pass(*clock, 20ms);
    std::erase_if(waiting, [](auto& w) {
      return w.wait_for(0s) == std::future_status::ready && w.get().ok();
    });
    return waiting.empty();
  });
}

}  // namespace
