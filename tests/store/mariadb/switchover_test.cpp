#include "fixture.hpp"

// A primary that is made read only, as before another server takes over: nobody may go on to use
// it.
namespace mariadb_test {
namespace {

using namespace std::chrono_literals;
using harness::eventually;
using harness::mariadb_server;
using holdfast::errc;
using holdfast::lease_state;

class mariadb_switchover : public testing::Test {
 protected:
  mariadb_switchover() {
    admin_.ask("create user app@'%'; create database locks; grant all on locks.* to app@'%'");
  }
  std::string url(const std::string& options = {}) const {
    std::string as_app = server_.url() + "locks" + options;
    return as_app.replace(as_app.find("admin"), 5, "app");
  }
  void only_read(bool so) const {
    admin_.ask(std::string("set global read_only = ") + (so ? "on" : "off"));
  }
  std::string connections() const {
    return admin_.ask(
        "select group_concat(id) from information_schema.processlist where user = 'app'");
  }

  mariadb_server server_;
  const client admin_{server_.port()};
};

TEST_F(mariadb_switchover, what_was_held_of_the_old_primary_s_own_locks_is_lost_within_a_renewal) {
  auto s = holdfast::open(url("?mode=session&session=3s"));
  auto idle = holdfast::open(url("?mode=session&session=3600s"));
  holdfast::mutex m{s, "m"}, other{idle, "other"};
  const auto held = m.acquire();
  only_read(true);
  const auto refused = outcome_of([&] { (void)other.try_lock(); });
  EXPECT_EQ(refused.reason, errc::read_only) << "another server may have granted it";
  EXPECT_FALSE(refused.unknown);
  EXPECT_EQ(harness::outcome_of_opening(url("?mode=session")).reason, errc::read_only);
  eventually("the loss to be told", [&] { return held.state() == lease_state::lost; });
  only_read(false);
  EXPECT_TRUE(other.try_lock());
  EXPECT_TRUE(m.try_lock());
}

TEST_F(mariadb_switchover, a_connection_that_was_refused_a_write_is_not_used_again) {
  auto s = holdfast::open(url("?connections=1"));
  holdfast::mutex m{s, "m"};
  m.lock(), m.unlock();
  const auto before = connections();
  only_read(true);
  const auto refused = outcome_of([&] { (void)m.try_lock(); });
  EXPECT_EQ(refused.reason, errc::read_only);
  EXPECT_FALSE(refused.unknown);
  only_read(false);
  EXPECT_TRUE(m.try_lock());
  EXPECT_NE(connections(), before) << "it may lead to another server";
  m.unlock();
}

}  // namespace
}  // namespace mariadb_test
