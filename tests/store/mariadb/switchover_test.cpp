#include <thread>

#include "fixture.hpp"
#include "harness/fault_proxy.hpp"
#include "store/mariadb/link.hpp"

// A primary that is made read only, as before another server takes over: no request may continue to
// use it.
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
  /// The URL of a user who is never refused a write.
  std::string url_of_admin(const std::string& database = "locks") const {
    return server_.url() + database;
  }
  std::string rows() const {
    return admin_.ask(
        "select group_concat(name, ' ', version, ' ', record) from locks.holdfast_records");
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

TEST_F(mariadb_switchover, locks_of_the_old_primary_are_lost_within_a_renewal) {
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

// A guess reads nothing that would show that the server is read only.
TEST_F(mariadb_switchover, a_guess_that_the_server_refuses_breaks_its_connection) {
  namespace my = holdfast::store::mariadb;
  const auto made = holdfast::open(url());
  const my::tables names{"locks"};
  const auto by = holdfast::boot_clock::now() + 1h;
  const holdfast::store::sql::replacement guess{
      .name = "m", .there = true, .version = 1, .record = "[]", .assumed_now = 1};
  for (const int guessed : {0, 2}) {  // then the statement is prepared
    const auto over =
        std::move(*my::link::open(*my::read_options(*holdfast::base::parse_url(url())), names));
    for (int i = 0; i < guessed; ++i) EXPECT_TRUE(over->replace({&guess, 1}, by));
    only_read(true);
    const auto refused = over->replace({&guess, 1}, by);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::read_only) << refused.error().what;
    EXPECT_FALSE(over->usable()) << "another server may be primary now";
    only_read(false);
  }
}

TEST_F(mariadb_switchover, a_user_that_may_still_write_is_refused_too) {
  auto s = holdfast::open(url_of_admin() + "?connections=1");
  holdfast::mutex m{s, "m"};
  for (int n = 0; n < 4; ++n) m.lock(), m.unlock();  // the statement is prepared by now
  holdfast::mutex of_holder{s, "held", {.lease = 3s}};
  const auto held = of_holder.acquire();
  const auto seen = holdfast::mutex(s, "seen").acquire();
  only_read(true);
  const auto before = rows();
  const auto refused = outcome_of([&] { (void)m.try_lock(); });
  EXPECT_EQ(refused.reason, errc::read_only) << refused.text;
  EXPECT_FALSE(refused.unknown);
  auto other = holdfast::open(url_of_admin());
  holdfast::mutex unused{other, "another"}, m_there{other, "m"};
  EXPECT_EQ(outcome_of([&] { (void)unused.try_lock(); }).reason, errc::read_only);
  holdfast::multi_lock both{m_there, unused};
  EXPECT_EQ(outcome_of([&] { (void)both.try_acquire(); }).reason, errc::read_only);
  EXPECT_EQ(other.show("seen").holders.size(), 1u) << "looking is allowed";
  eventually("the holder to be told", [&] { return held.state() == lease_state::lost; });
  EXPECT_EQ(rows(), before) << "what is written here, the new primary does not have";
  only_read(false);
  EXPECT_TRUE(m.try_lock());
  EXPECT_TRUE(unused.try_lock());
  m.unlock(), unused.unlock();
}

TEST_F(mariadb_switchover, a_transaction_under_way_writes_nothing_once_the_server_is_read_only) {
  namespace my = holdfast::store::mariadb;
  const auto made = holdfast::open(url_of_admin());
  const my::tables names{"locks"};
  const auto over = std::move(
      *my::link::open(*my::read_options(*holdfast::base::parse_url(url_of_admin())), names));
  const std::string_view name = "m";
  const auto row = over->lock({&name, 1}, holdfast::forever);
  ASSERT_TRUE(row) << row.error().what;
  only_read(true);
  const holdfast::store::sql::rewrite wanted{name, "[1,\"mutex\",0,7,[],[]]"};
  const auto written =
      over->unlock({&wanted, 1}, row->front().now_at + 60'000'000, holdfast::forever);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, errc::read_only) << written.error().what;
  EXPECT_FALSE(over->usable());
  EXPECT_EQ(rows(), "");
}

TEST_F(mariadb_switchover, nothing_is_made_or_swept_at_a_server_that_is_read_only) {
  {
    auto s = holdfast::open(url_of_admin());
    holdfast::mutex m{s, "m"};
    m.lock(), m.unlock();
    only_read(true);
  }
  EXPECT_NE(rows(), "");
  EXPECT_EQ(harness::outcome_of_opening(url_of_admin("fresh")).reason, errc::read_only);
  EXPECT_EQ(admin_.ask("select count(*) from information_schema.schemata where schema_name = "
                       "'fresh'"),
            "0");
}

// A load balancer leaves the present connections at a former primary that still writes.
TEST_F(mariadb_switchover, a_session_with_a_connection_to_the_new_primary_leaves_the_former_one) {
  const mariadb_server now;
  const auto url_at = [](int port) { return mariadb_server::url_of(port) + "locks"; };
  auto there = holdfast::open(url_at(now.port()));
  harness::fault_proxy address(server_.port());
  auto s = holdfast::open(url_at(address.port()) + "?connections=2");
  holdfast::mutex m{s, "m"}, busy{s, "busy"}, also{s, "also"}, of_another{there, "m"};
  for (holdfast::mutex* const one : {&m, &busy, &also}) one->lock(), one->unlock();
  address.with(
      [&](harness::relay& r) { r.lead_to({"127.0.0.1", static_cast<std::uint16_t>(now.port())}); });
  const auto held = of_another.acquire();

  admin_.ask("lock tables locks.holdfast_records write");
  std::jthread blocked([&] { (void)outcome_of([&] { (void)busy.try_lock(); }); });
  const client watching(server_.port());
  eventually("the connection to the former primary to be in use", [&] {
    return watching.ask(
               "select count(*) from information_schema.processlist where state like "
               "'Waiting for table%'") != "0";
  });
  EXPECT_TRUE(also.try_lock()) << "over a new connection";
  admin_.ask("unlock tables");
  blocked.join();
  EXPECT_FALSE(m.try_lock());
  EXPECT_EQ(there.show("also").holders.size(), 1U);
  EXPECT_EQ(held.state(), lease_state::held);
}

}  // namespace
}  // namespace mariadb_test
