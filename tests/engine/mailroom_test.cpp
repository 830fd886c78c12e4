#include "engine/mailroom.hpp"

#include <gtest/gtest.h>

#include <deque>

namespace {

using holdfast::boot_time;
using holdfast::engine::mailroom;
using holdfast::store::notice;
using holdfast::store::notice_kind;
using holdfast::store::owner_id;

/// Has what was put in, and does not wait for more.
class full_inbox final : public holdfast::store::inbox {
 public:
  const std::string& peer() const noexcept override { return peer_; }
  std::optional<notice> receive(boot_time) override {
    if (notices_.empty()) return std::nullopt;
    notice first = notices_.front();
    notices_.pop_front();
    return first;
  }
  void interrupt() noexcept override {}
  void put(notice_kind what, const owner_id& to) {
    notice n;
    n.what = what;
    n.owner = to;
    notices_.push_back(n);
  }

 private:
  std::string peer_ = "me";
  std::deque<notice> notices_;
};

struct room_test : testing::Test {
  full_inbox inbox;
  mailroom room{inbox, holdfast::real_clock()};
  mailroom::slot one{room, owner_id{1, 1}};
  mailroom::slot many{room, mailroom::slot::for_many::owners};
};

using mailroom_of_many = room_test;

TEST_F(mailroom_of_many, it_gets_what_is_for_none_of_the_others) {
  many.listen(true);
  inbox.put(notice_kind::granted, {7, 7});
  inbox.put(notice_kind::granted, {1, 1});
  inbox.put(notice_kind::opened, {8, 8});
  const auto got = many.collect(boot_time{});
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(got[0].owner, (owner_id{7, 7}));
  EXPECT_EQ(got[1].owner, (owner_id{8, 8}));
  EXPECT_TRUE(one.wait(boot_time{}));
}

TEST_F(mailroom_of_many, while_it_does_not_listen_nothing_piles_up) {
  many.listen(true);
  many.listen(false);
  for (std::uint64_t i = 2; i < 50; ++i) inbox.put(notice_kind::granted, {i, i});
  (void)one.wait(holdfast::real_clock().now() + std::chrono::milliseconds(5));
  many.listen(true);
  EXPECT_TRUE(many.collect(boot_time{}).empty());
}

TEST_F(mailroom_of_many, one_that_is_always_busy_reads_what_has_come) {
  many.listen(true);
  for (std::uint64_t i = 2; i < 5; ++i) {
    many.wake();
    inbox.put(notice_kind::granted, {i, i});
    EXPECT_EQ(many.collect(boot_time::max()).size(), 1U);
  }
}

}  // namespace
