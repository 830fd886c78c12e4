#include <thread>

#include "fixture.hpp"

// mode=session: what is special about advisory locks. The rest is the conformance suite's.
namespace postgres_test {
namespace {

using namespace std::chrono_literals;
using harness::eventually;
using holdfast::errc;
using holdfast::lease_state;

class postgres_session : public postgres_store {
 protected:
  holdfast::session open(const std::string& options = {}) const {
    return postgres_store::open("&mode=session" + options);
  }
  static std::string keys(const char* granted) {
    return std::string("select count(*) from pg_locks where locktype = 'advisory' and granted = ") +
           granted;
  }
};

TEST_F(postgres_session, a_wait_that_is_given_up_leaves_no_place) {
  auto a = open(), b = open();
  holdfast::mutex first{a, "m"}, second{b, "m"};
  const auto held = first.acquire();
  EXPECT_FALSE(second.try_lock_for(20ms));
  EXPECT_EQ(ask(keys("false")), "0");
  EXPECT_EQ(a.show("m").waiters.size(), 0u);
}

}  // namespace
}  // namespace postgres_test
