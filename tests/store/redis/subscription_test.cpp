#include "store/redis/subscription.hpp"

#include <atomic>

#include "fixture.hpp"
#include "harness/tcp.hpp"

// The connection for notifications, while it cannot be made again.
namespace {

using namespace std::chrono_literals;
using harness::eventually;
namespace redis = holdfast::store::redis;

holdfast::boot_time in(std::chrono::milliseconds d) { return holdfast::boot_clock::now() + d; }

/// A server, and one that accepts everybody and sends nothing. A client is sent to the first, then
/// to the silent one, for as long as the test wants.
class redis_subscription : public testing::Test {
 protected:
  redis::redis_options options() {
    redis::redis_options o;
    o.connect_timeout = std::chrono::hours(1);
    o.locate = [this](holdfast::boot_time, int) -> holdfast::result<redis::address> {
      ++asked_;
      const int port = silent_is_asked_ ? silent_.port() : server_.port();
      return redis::address{"127.0.0.1", static_cast<std::uint16_t>(port)};
    };
    return o;
  }
  void cut() { server_.ask({"CLIENT", "KILL", "TYPE", "pubsub"}); }
  /// Waits on the subscription for a moment at a time, as often as necessary.
  void until(const char* what, const std::function<bool()>& is_so) {
    eventually(what, [&] {
      (void)listening_.receive(in(1ms));
      return is_so();
    });
  }

  harness::redis_server server_;
  harness::fake_server silent_{[](std::string&) { return std::string(); }};
  std::atomic<bool> silent_is_asked_{false};
  std::atomic<int> asked_{0};
  const redis::redis_options options_ = options();
  redis::subscription listening_{options_};
};

TEST_F(redis_subscription, that_cannot_be_restored_delays_no_call) {
  ASSERT_TRUE(listening_.open());
  silent_is_asked_ = true;
  cut();
  until("an attempt", [&] { return asked_ == 2; });
  // An hour each, if they waited for it.
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(listening_.receive(in(5ms)));
  listening_.interrupt();
  EXPECT_FALSE(listening_.receive(holdfast::forever)) << "who is woken goes away";
  EXPECT_EQ(asked_, 2) << "one attempt at a time";
}

TEST_F(redis_subscription, is_restored_although_each_waiter_has_less_time_than_it_takes) {
  ASSERT_TRUE(listening_.open());
  const auto before = listening_.gaps();
  cut();
  const auto channel = redis::channel_prefix(options_) + listening_.peer();
  until("a subscription",
        [&] { return server_.ask({"PUBSUB", "NUMSUB", channel}) == channel + " 1"; });
  const std::string owner(32, 'a');
  server_.ask({"PUBLISH", channel, "granted " + owner + " 7 8 holdfast:{m}"});
  std::optional<holdfast::store::notification> got;
  eventually("a notice", [&] {
    got = listening_.receive(in(1ms));
    return got.has_value();
  });
  EXPECT_EQ(got->name, "m");
  EXPECT_GT(listening_.gaps(), before) << "what was told meanwhile was not heard";
}

TEST_F(redis_subscription, that_is_cut_counts_as_a_gap_before_it_is_restored) {
  ASSERT_TRUE(listening_.open());
  const auto before = listening_.gaps();
  silent_is_asked_ = true;
  cut();
  until("a gap", [&] { return listening_.gaps() > before; });
}

}  // namespace
