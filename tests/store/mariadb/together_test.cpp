#include "fixture.hpp"
#include "harness/fault_proxy.hpp"
#include "harness/several_names.hpp"
#include "session/session_impl.hpp"
#include "store/mariadb/mariadb.hpp"
#include "store/sql/combined_rules.hpp"
#include "store/sql/own_notifications.hpp"

// A multi_lock, and changes of several threads: several rows in one transaction.
namespace mariadb_test {
namespace {

// The server notifies nobody, so a waiter of another session polls.
TEST_F(mariadb_store, a_waiter_of_the_same_session_is_notified_of_its_turn) {
  const auto s = open(), other = open();
  const auto ask = [&](const holdfast::session& by, holdfast::store::permits_verb verb,
                       std::uint64_t owner) {
    holdfast::store::permits_command c{.verb = verb, .owner = {1, owner}, .wait = true};
    const std::string peer = by.impl()->peer();
    c.lease_us = c.queue_lease_us = 60'000'000, c.peer = peer;
    return by.impl()->permits("m", c).value().outcome;
  };
  using enum holdfast::store::permits_verb;
  ask(s, acquire, 1), ask(s, acquire, 2), ask(other, acquire, 3);
  holdfast::engine::dispatcher::registration second(s.impl()->dispatcher(), {1, 2});
  holdfast::engine::dispatcher::registration third(other.impl()->dispatcher(), {1, 3});
  EXPECT_EQ(ask(s, release, 1), holdfast::store::permits_outcome::done);
  const auto told = second.wait(holdfast::boot_clock::now() + std::chrono::seconds(10));
  ASSERT_TRUE(told);
  EXPECT_EQ(told->what, holdfast::store::notification_kind::granted);
  ask(s, release, 2);
  EXPECT_FALSE(third.wait(holdfast::boot_clock::now() + std::chrono::milliseconds(1)));
}

// Its waiters poll, so none of its threads need ever read the inbox.
TEST_F(mariadb_store, a_session_keeps_a_thousand_notifications_by_itself) {
  namespace db = holdfast::store::mariadb;
  auto o = db::read_options(*holdfast::base::parse_url(url())).value();
  o.clock = &holdfast::real_clock();
  const auto store = db::open_mariadb(std::move(o)).value();
  sql_test::keeps_a_thousand_notifications_by_itself(*store);
}

TEST_F(mariadb_store, several_names_are_taken_in_one_transaction_or_not_at_all) {
  harness::take_all_or_none([&] { return open(); });
}

TEST_F(mariadb_store, names_that_overlap_are_taken_by_one_after_the_other) {
  harness::take_overlapping_names([&] { return open(); });
}

// The trigger refuses a name's change for the reason that the table `refusals` has for it.
TEST_F(mariadb_store, changes_that_are_sent_together_have_each_its_own_outcome) {
  (void)open();
  const auto refusals = table("refusals");
  ask("create table " + refusals + " (name varchar(50), number int)");
  ask("create trigger " + table("refuse") + " before update on " + table("holdfast_records") +
      " for each row begin declare n int default (select max(number) from " + refusals +
      " r where r.name = new.name); if n is not null then signal sqlstate '45000' set mysql_errno "
      "= n, message_text = 'refused'; end if; end");
  let_user();
  harness::fault_proxy network(port());
  namespace db = holdfast::store::mariadb;
  auto through = url_of_user("?connections=2&command_timeout=4s");
  const auto port_of_server = std::to_string(port());
  through.replace(through.find(port_of_server), port_of_server.size(),
                  std::to_string(network.port()));
  auto o = db::read_options(*holdfast::base::parse_url(through)).value();
  o.clock = &holdfast::real_clock();
  const auto store = db::open_mariadb(std::move(o)).value();
  const client other{port()};
  sql_test::expect_each_thread_learns_its_own_outcome(
      *store, {.ask = [&](const std::string& sql) { return ask(sql); },
               .other = [&](const std::string& sql) { other.ask(sql); },
               .network = network,
               .records = table("holdfast_records"),
               .refusals = refusals,
               .errors = {"1020", "1205", "1969", "1317", "1142", "1114", "1290", "1180"},
               .kills = {"kill connection user " + user_, "kill query user " + user_}});
}

}  // namespace
}  // namespace mariadb_test
