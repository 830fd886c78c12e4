#include "tool/acquire.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <holdfast/session.hpp>
#include <holdfast/timed.hpp>
#include <utility>

#include "harness/redis_server.hpp"

namespace tool_test {

namespace {

using namespace std::chrono_literals;
using namespace holdfast::tool;

}  // namespace

TEST(busy_news, come_without_the_holder_when_the_store_hangs) {
  harness::redis_server server;
  common_options details;
  details.verbose = true;
  holdfast::tool::log to{details, 2};
  for (const auto& [wait, expected] : {std::pair{holdfast::one_try, "l is busy"},
                                       {holdfast::wait_time{1ms}, "l was busy for 1ms"}}) {
    const auto s = holdfast::open(server.url("?command_timeout=1h"));
    take_options t;
    t.lock.name = "l";
    t.wait = wait;
    server.stop();
    const auto limit = holdfast::detail::time_frame(holdfast::boot_clock::now(), wait).limit();
    const auto news = tell_busy(s, t, to, limit);
    EXPECT_EQ(news.text, expected);
    EXPECT_TRUE(news.hangs);
    server.resume();
  }
}

TEST(busy_news, ask_nothing_when_the_time_is_over) {
  const auto s = holdfast::open("memory:busy-news");
  common_options details;
  details.verbose = true;
  const holdfast::tool::log to{details, 2};
  take_options t;
  t.lock.name = "l";
  t.wait = 1ms;
  const auto before = s.store_operations();
  EXPECT_FALSE(tell_busy(s, t, to, holdfast::boot_clock::now()).hangs);
  EXPECT_EQ(s.store_operations(), before);
  EXPECT_FALSE(tell_busy(s, t, to, holdfast::forever).hangs);
  EXPECT_GT(s.store_operations(), before);
}

}  // namespace tool_test
