#include "fixture.hpp"

// What a user may do, and what is said when that is too little. That everything works with the
// rights that docs/stores/redis.md lists is for the conformance tests: they log in with them.
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using redis_test::contains;
using redis_test::outcome_of;

class redis_rights : public testing::Test {
 protected:
  void take_away(const std::string& right) {
    EXPECT_EQ(server_.ask({"ACL", "SETUSER", "app", "-" + right.substr(1)}), "OK");
  }
  std::string url() const { return harness::as_documented_user(server_.url()); }
  harness::redis_server server_;
};

TEST_F(redis_rights, of_the_third_contender_and_of_limiters_are_listed_too) {
  redis_test::give_documented_rights(server_, {"everywhere"});
  auto a = holdfast::open(url()), b = holdfast::open(url()), c = holdfast::open(url());
  holdfast::mutex first{a, "m"}, second{b, "m"}, third{c, "m"};
  auto held = first.acquire();
  const auto until_waiting = [&](std::size_t n) {
    harness::eventually("they wait", [&] { return a.show("m").waiters.size() == n; });
  };
  auto one = async_acquire(second).future();
  until_waiting(1);
  auto two = async_acquire(third).future();
  until_waiting(2);
  EXPECT_FALSE(held.release());
  for (auto* const f : {&one, &two}) EXPECT_NO_THROW((void)f->get().value().release());
  EXPECT_TRUE(holdfast::rate_limiter(a, "r", {{.tokens = 5}}).try_take());
}

TEST_F(redis_rights, a_script_that_is_refused_one_of_its_commands_is_not_permitted) {
  for (const char* const right : {"+hsetnx", "+mget"}) {
    server_.ask({"FLUSHALL"});
    server_.ask({"ACL", "DELUSER", "app"});
    redis_test::give_documented_rights(server_, {"everywhere"});
    take_away(right);
    const auto o = outcome_of([&] {
      auto s = holdfast::open(url());
      if (right == std::string("+mget")) {
        (void)holdfast::rate_limiter(s, "r", {{.tokens = 5}}).try_take();
        return;
      }
      holdfast::mutex first{holdfast::open(url()), "m"}, second{holdfast::open(url()), "m"};
      auto held = first.acquire();
      auto next = async_acquire(second).future();
      harness::eventually("one waits", [&] { return s.show("m").waiters.size() == 1; });
      try {
        (void)holdfast::mutex(s, "m").try_lock_for(60s);
      } catch (...) {
        (void)held.release();
        (void)next.get();
        throw;
      }
    });
    EXPECT_EQ(o.reason, errc::not_permitted) << right << ": " << o.text;
    EXPECT_TRUE(contains(o.text, "docs/stores/redis.md")) << o.text;
  }
}

}  // namespace
