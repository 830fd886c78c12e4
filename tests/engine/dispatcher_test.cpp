#include "session/dispatcher.hpp"

#include <gtest/gtest.h>

#include <deque>

namespace {

using holdfast::boot_time;
using holdfast::engine::dispatcher;
using holdfast::store::notification;
using holdfast::store::notification_kind;
using holdfast::store::owner_id;

/// Delivers its notifications, and does not wait for more.
class full_inbox final : public holdfast::store::inbox {
 public:
  const std::string& peer() const noexcept override { return peer_; }
  std::optional<notification> receive(boot_time) override {
    if (notifications_.empty()) return std::nullopt;
    notification first = notifications_.front();
    notifications_.pop_front();
    return first;
  }
  void interrupt() noexcept override {}
  void put(notification_kind what, const owner_id& to) {
    notification n;
    n.what = what;
    n.owner = to;
    notifications_.push_back(n);
  }

 private:
  std::string peer_ = "me";
  std::deque<notification> notifications_;
};

struct room_test : testing::Test {
  full_inbox inbox;
  dispatcher room{inbox, holdfast::real_clock()};
  dispatcher::registration one{room, owner_id{1, 1}};
  dispatcher::registration many{room, dispatcher::registration::for_many::owners};
};

using dispatcher_of_many = room_test;

TEST_F(dispatcher_of_many, it_receives_the_notifications_that_no_other_expects) {
  many.listen(true);
  inbox.put(notification_kind::granted, {7, 7});
  inbox.put(notification_kind::granted, {1, 1});
  inbox.put(notification_kind::opened, {8, 8});
  const auto got = many.collect(boot_time{});
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(got[0].owner, (owner_id{7, 7}));
  EXPECT_EQ(got[1].owner, (owner_id{8, 8}));
  EXPECT_TRUE(one.wait(boot_time{}));
}

TEST_F(dispatcher_of_many, a_dispatcher_that_does_not_listen_queues_no_notifications) {
  many.listen(true);
  many.listen(false);
  for (std::uint64_t i = 2; i < 50; ++i) inbox.put(notification_kind::granted, {i, i});
  inbox.put(notification_kind::granted, {1, 1});
  EXPECT_TRUE(one.wait(holdfast::real_clock().now() + std::chrono::minutes(1)));  // reads all
  many.listen(true);
  EXPECT_TRUE(many.collect(boot_time{}).empty());
}

TEST_F(dispatcher_of_many, that_is_always_busy_reads_its_notifications) {
  many.listen(true);
  for (std::uint64_t i = 2; i < 5; ++i) {
    many.wake();
    inbox.put(notification_kind::granted, {i, i});
    EXPECT_EQ(many.collect(boot_time::max()).size(), 1U);
  }
}

}  // namespace
