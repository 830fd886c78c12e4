#include <functional>
#include <holdfast/store/state_store.hpp>
#include <vector>

#include "fixture.hpp"
#include "harness/concurrently.hpp"
#include "store/mariadb/link.hpp"
#include "store/sql/floor_rules.hpp"
#include "store/sql/row_store.hpp"

// The version with which a row may be made while others acquire, release and sweep the same name.
namespace mariadb_test {
namespace {

using harness::eventually;
using sql_test::row_link;
namespace my = holdfast::store::mariadb;

class mariadb_floor : public sql_test::floor_rules<mariadb_store> {
 protected:
  mariadb_floor() { connect(); }
  void connect() {
    auto o = *my::read_options(*holdfast::base::parse_url(url()));
    auto made = std::move(*my::link::open(o, tables_));
    id_ = made->id();
    link_ = std::move(made);
  }
  ~mariadb_floor() override { link_.reset(); }  // before the tables that it knows

  const holdfast::session made_ = open();
  const my::tables tables_{database_};
  std::int64_t id_ = 0;
};

TEST_F(mariadb_floor, a_name_that_was_swept_after_it_was_read_is_not_made) {
  expect_that_what_was_swept_is_not_made();
}

TEST_F(mariadb_floor, a_name_that_was_removed_after_it_was_read_is_not_made) {
  expect_that_what_was_removed_is_not_made();
}

TEST_F(mariadb_floor, a_name_that_is_being_swept_is_not_created_from_an_earlier_read) {
  expect_that_what_is_being_swept_is_not_made(client{port()}, [&] {
    eventually("somebody waits for a lock", [&] {
      return ask("select count(*) from information_schema.processlist where id = " +
                 std::to_string(id_) + " and state <> ''") != "0";
    });
  });
}

TEST_F(mariadb_floor, a_sweep_keeps_the_next_version_above_all_earlier_ones) {
  expect_that_a_sweep_keeps_all_versions_below_what_comes_next();
}

TEST_F(mariadb_floor, a_sweep_keeps_remembered_names) {
  expect_that_a_sweep_leaves_what_is_remembered();
}

TEST_F(mariadb_floor, a_listing_continues_after_a_given_name) {
  expect_that_a_walk_goes_on_behind_a_name();
}

// Otherwise its locks and changes would last over the next request's commands.
TEST_F(mariadb_floor, a_transaction_that_failed_in_the_middle_ends_with_its_connection) {
  auto o = *my::read_options(*holdfast::base::parse_url(url()));
  // The server gives up the wait for a row before it ends the transaction that has the row, and
  // before the client gives up the connection.
  o.command_timeout = std::chrono::seconds(20);
  const auto first = std::move(*my::link::open(o, tables_));
  o.command_timeout = std::chrono::seconds(2);
  const auto second = std::move(*my::link::open(o, tables_));
  const std::string_view name = "m";
  ASSERT_TRUE(first->lock({&name, 1}, holdfast::forever));
  EXPECT_FALSE(second->lock({&name, 1}, holdfast::forever));
  EXPECT_FALSE(second->usable());
}

/// The server undoes the whole transaction of a deadlock's victim.
class mariadb_deadlock : public mariadb_floor {
 protected:
  mariadb_deadlock() {
    auto o = *my::read_options(*holdfast::base::parse_url(url()));
    o.command_timeout = std::chrono::seconds(20);
    mine_ = std::move(*my::link::open(o, tables_));
    std::string more = "start transaction";
    for (const char c : std::string_view("bcdefghijklmnopqrstuvwxyz")) {
      more += "; insert into " + table("holdfast_records") + " values ('" + c + "', 1, 'null')";
    }
    other_.ask(more);  // a transaction that has written more is not the victim
  }
  ~mariadb_deadlock() override { mine_.reset(); }

  /// Whether a client that does not wait may change "a". (The server's list of waiters includes
  /// other tests' clients.)
  bool is_free_for(const client& probe) const {
    try {
      probe.ask("set session innodb_lock_wait_timeout = 0; start transaction; insert into " +
                table("holdfast_records") + " values ('a', 1, 'null'); rollback");
      return true;
    } catch (const std::exception& e) {
      EXPECT_NE(std::string_view(e.what()).find("Lock wait timeout"), std::string_view::npos)
          << e.what();
      return false;
    }
  }
  /// The result of `act`, which first changes "a", and then waits for "b".
  template <class Act>
  auto of(Act act) {
    auto victim = harness::concurrently(act);
    eventually("it has changed a", [&] { return !is_free_for(client{port()}); });
    other_.ask("insert into " + table("holdfast_records") + " values ('a', 1, 'null')");
    return victim.get();
  }
  template <class Outcome>
  void expect_that_the_connection_works_after(const Outcome& outcome) {
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, holdfast::errc::busy) << outcome.error().what;
    EXPECT_TRUE(mine_->usable());
    other_.ask("rollback");
    EXPECT_TRUE(mine_->lock(names_, holdfast::forever));
    EXPECT_TRUE(mine_->unlock({}, 0, holdfast::forever));
  }

  const std::vector<std::string_view> names_{"a", "b"};
  const client other_{port()};
  std::unique_ptr<my::link> mine_;
};

TEST_F(mariadb_deadlock, leaves_the_victim_that_locks_rows_a_connection_that_works) {
  expect_that_the_connection_works_after(
      of([&] { return mine_->lock(names_, holdfast::forever); }));
}

TEST_F(mariadb_deadlock, leaves_the_victim_that_replaces_rows_a_connection_that_works) {
  const auto seen = read("a");
  const std::vector<sql_test::replacement> both{first("a", seen), first("b", seen)};
  expect_that_the_connection_works_after(
      of([&] { return mine_->replace(both, holdfast::forever); }));
}

// A program that is stopped in the middle of a transaction delays the others only for this long.
TEST_F(mariadb_floor, the_server_ends_an_idle_transaction) {
  auto o = *my::read_options(*holdfast::base::parse_url(url()));
  o.command_timeout = std::chrono::seconds(1);
  // The server applies the limit of writing transactions first, if there is one.
  ask("set global idle_write_transaction_timeout = 3600");
  const auto stopped = std::move(*my::link::open(o, tables_));
  ask("set global idle_write_transaction_timeout = 0");
  o.command_timeout = std::chrono::seconds(20);
  const auto other = std::move(*my::link::open(o, tables_));
  const std::string_view name = "m";
  ASSERT_TRUE(stopped->lock({&name, 1}, holdfast::forever));
  const auto locked = other->lock({&name, 1}, holdfast::forever);
  EXPECT_TRUE(locked) << locked.error().what;
  EXPECT_TRUE(other->unlock({}, 0, holdfast::forever));
  const auto late = stopped->unlock({}, 0, holdfast::forever);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, holdfast::errc::unavailable) << late.error().what;
  EXPECT_FALSE(stopped->usable());
}

/// Writes a record. The first time it pauses until `gone` returns true.
class stops_once final : public holdfast::store::transition {
 public:
  explicit stops_once(std::function<bool()> gone) : gone_(std::move(gone)) {}
  const std::string* apply(std::string_view, const holdfast::store::moment&) override {
    if (++times_ == 1) eventually("the server to end the transaction", gone_);
    return &record_;
  }
  int times() const { return times_; }

 private:
  const std::function<bool()> gone_;
  const std::string record_ = "[1,\"mutex\",0,7,[],[]]";
  int times_ = 0;
};

TEST_F(mariadb_floor, a_command_whose_transaction_was_ended_as_idle_is_repeated) {
  auto o = *my::read_options(*holdfast::base::parse_url(url()));
  o.command_timeout = std::chrono::seconds(1);
  std::vector<std::int64_t> connections;
  holdfast::store::sql::row_store rows(
      [&](holdfast::boot_time) -> holdfast::result<std::unique_ptr<row_link>> {
        auto made = my::link::open(o, tables_);
        if (!made) return std::move(made.error());
        connections.push_back((*made)->id());
        return std::unique_ptr<row_link>(std::move(*made));
      },
      1, std::chrono::minutes(1));
  stops_once change([&] {
    return ask("select count(*) from information_schema.processlist where id = " +
               std::to_string(connections.front())) == "0";
  });
  const holdfast::store::state_store::step step{"m", &change};
  const auto done = rows.transact_together(
      {&step, 1}, [](std::size_t) { return holdfast::store::state_store::verdict::go_on; });
  EXPECT_TRUE(done) << done.error().what;
  EXPECT_GE(change.times(), 2);
  EXPECT_GE(connections.size(), 2u);
  EXPECT_EQ(ask("select record from " + table("holdfast_records")), "[1,\"mutex\",0,7,[],[]]");
}

TEST_F(mariadb_floor, a_change_that_comes_late_is_not_carried_out) {
  expect_that_what_comes_late_changes_nothing();
}

TEST_F(mariadb_floor, a_transaction_that_ends_after_its_time_is_undone) {
  expect_that_a_transaction_that_ends_after_its_time_is_undone();
  connect();
  expect_that_a_transaction_that_ends_in_time_is_not();
}

TEST_F(mariadb_floor, a_guess_of_another_time_changes_nothing) {
  expect_that_a_guess_of_another_time_changes_nothing();
}

TEST_F(mariadb_floor, a_guess_of_another_version_changes_nothing) {
  expect_that_a_guess_of_another_version_changes_nothing();
}

TEST_F(mariadb_floor, a_statement_that_comes_after_its_time_changes_nothing) {
  expect_that_what_comes_after_its_time_changes_nothing();
}

}  // namespace
}  // namespace mariadb_test
