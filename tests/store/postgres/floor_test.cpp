
#include "fixture.hpp"
#include "harness/concurrently.hpp"
#include "store/postgres/link.hpp"
#include "store/postgres/opening.hpp"
#include "store/sql/floor_rules.hpp"

// The version with which a row may be made while others acquire, release and sweep the same name.
namespace postgres_test {
namespace {

using namespace std::chrono_literals;
using harness::eventually;
using holdfast::store::postgres::statements;
namespace pg = holdfast::store::postgres;

class postgres_floor : public sql_test::floor_rules<postgres_store> {
 protected:
  postgres_floor() { link_ = connect(); }
  ~postgres_floor() override { link_.reset(); }  // before the statements that it knows
  std::unique_ptr<sql_test::row_link> connect() const {
    const auto to = *pg::read_address(*holdfast::base::parse_url(base_));
    return std::move(*pg::link::over(std::move(*pg::connect(to, soon())), sql_, 60s));
  }
  void until_a_lock_has_a_waiter() const {
    eventually("somebody waits for a lock of this schema", [&] {
      return ask("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query "
                 "like '%" +
                 schema_ + "%'") != "0";
    });
  }

  const holdfast::session made_ = open("&listen=never");
  const statements sql_{schema_};
};

TEST_F(postgres_floor, a_name_that_was_swept_after_it_was_read_is_not_made) {
  expect_that_what_was_swept_is_not_made();
}

TEST_F(postgres_floor, a_name_that_was_removed_after_it_was_read_is_not_made) {
  expect_that_what_was_removed_is_not_made();
}

TEST_F(postgres_floor, a_name_that_is_being_swept_is_not_created_from_an_earlier_read) {
  expect_that_what_is_being_swept_is_not_made(client{base_}, [&] { until_a_lock_has_a_waiter(); });
}

TEST_F(postgres_floor, a_sweep_keeps_the_next_version_above_all_earlier_ones) {
  expect_that_a_sweep_keeps_all_versions_below_what_comes_next();
}

TEST_F(postgres_floor, a_sweep_keeps_remembered_names) {
  expect_that_a_sweep_leaves_what_is_remembered();
}

// A statement that only the client gives up may still be carried out.
TEST_F(postgres_floor, a_wait_for_a_row_ends_at_the_server_before_its_request_ends) {
  ASSERT_TRUE(replace({first("m", read("m"))}));
  const auto there = read("m");
  const client other{base_};
  other.ask("begin; select * from " + table("holdfast_records") + " for update");
  const std::string_view name = "m";
  const sql_test::replacement wanted{
      .name = name, .there = true, .version = there.version, .record = "[]"};
  const auto refused = link_->replace({&wanted, 1}, holdfast::boot_clock::now() + 8s);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(contains(refused.error().what, "55P03")) << refused.error().what;
  EXPECT_TRUE(link_->did_nothing());
  const auto not_locked = link_->lock({&name, 1}, holdfast::boot_clock::now() + 8s);
  ASSERT_FALSE(not_locked);
  EXPECT_TRUE(contains(not_locked.error().what, "55P03")) << not_locked.error().what;
}

// A transaction locks its rows in the order of their names; a sweep locks them in no order.
TEST_F(postgres_floor, a_sweep_waits_for_no_row_and_leaves_rows_in_use) {
  ASSERT_TRUE(replace({first("a", read("a")), first("b", read("b"))}));
  const client other{base_};
  other.ask("begin; select * from " + table("holdfast_records") + " where name = 'b' for update");
  const std::string names[] = {"a", "b"};
  const auto swept = link_->sweep(names, soon());
  EXPECT_TRUE(swept) << swept.error().what;
  EXPECT_EQ(ask("select name from " + table("holdfast_records")), "b");
  other.ask("rollback");
  EXPECT_TRUE(link_->sweep(names, soon()));
  EXPECT_EQ(rows(), "0");
}

TEST_F(postgres_floor, a_listing_continues_after_a_given_name) {
  expect_that_a_walk_goes_on_behind_a_name();
}

TEST_F(postgres_floor, a_change_that_comes_late_is_not_carried_out) {
  expect_that_what_comes_late_changes_nothing();
}

TEST_F(postgres_floor, a_transaction_that_ends_after_its_time_is_undone) {
  expect_that_a_transaction_that_ends_after_its_time_is_undone();
  link_ = connect();
  expect_that_a_transaction_that_ends_in_time_is_not();
}

TEST_F(postgres_floor, a_guess_of_another_time_changes_nothing) {
  expect_that_a_guess_of_another_time_changes_nothing();
}

TEST_F(postgres_floor, a_guess_of_another_version_changes_nothing) {
  expect_that_a_guess_of_another_version_changes_nothing();
}

TEST_F(postgres_floor, a_statement_that_comes_after_its_time_changes_nothing) {
  expect_that_what_comes_after_its_time_changes_nothing();
}

// A row in the answer costs the server a good tenth of such a statement.
TEST_F(postgres_floor, a_replacement_returns_the_time_only_on_request) {
  const auto seen = read("m");
  auto made = first("m", seen);
  const auto outcome_of = [&](const holdfast::store::sql::replacement& r) {
    auto got = link_->replace({&r, 1}, soon());
    EXPECT_TRUE(got) << got.error().what;
    return got ? got->front() : holdfast::store::sql::replaced{};
  };
  const auto first_one = outcome_of(made);
  EXPECT_TRUE(first_one.done);
  EXPECT_EQ(first_one.version, made.version);
  EXPECT_EQ(first_one.now_at, 0);
  made.there = true;
  const auto second = outcome_of(made);
  EXPECT_TRUE(second.done);
  EXPECT_EQ(second.version, made.version + 1);
  EXPECT_EQ(second.now_at, 0);
  EXPECT_FALSE(outcome_of(made).done) << "of an old version";
  made.version = second.version;
  made.asks_time = true;
  const auto third = outcome_of(made);
  EXPECT_TRUE(third.done);
  EXPECT_GE(third.now_at, seen.now_at);
}

// A trigger makes the server answer as after a deadlock: of two real transactions either may be the
// victim.
TEST_F(postgres_floor,
       a_transaction_that_was_the_victim_of_a_deadlock_leaves_a_connection_that_works) {
  const std::string ring = table("ring");
  (void)ask("create function " + ring + "() returns trigger language plpgsql as $$ begin raise " +
            "exception 'deadlock detected' using errcode = '40P01'; end $$; create trigger ring " +
            "before insert on " + table("holdfast_records") +
            " for each row when (new.name = 'b') execute function " + ring + "()");
  const std::string_view names[] = {"a", "b"};
  const auto victim = link_->lock(names, soon());
  ASSERT_FALSE(victim);
  EXPECT_EQ(victim.error().code, holdfast::errc::busy) << victim.error().what;
  EXPECT_TRUE(link_->usable());
  const auto other = connect();
  EXPECT_TRUE(other->lock({names, 1}, soon())) << "nothing is locked";
  EXPECT_TRUE(other->unlock({}, 0, soon()));
  (void)ask("drop function " + ring + "() cascade");
  EXPECT_TRUE(link_->lock(names, soon()));
  EXPECT_TRUE(link_->unlock({}, 0, soon()));
}

// A statement that the server planned while the table had one page would scan the whole table from
// then on, until the server analyses the table again: a minute later or more.
TEST_F(postgres_floor, a_row_is_found_by_its_name_however_small_the_table_was) {
  constexpr int times = 10;
  (void)ask("insert into " + table("holdfast_records") + " values ('m', 7, '[]')");
  (void)ask("vacuum analyze " + table("holdfast_records"));
  for (int i = 0; i < times; ++i) {
    const auto there = read("m");
    (void)replace({guess_at(there.now_at, there.version)});
    (void)replace({guess_at(there.now_at, there.version, true)});
    (void)replace({{"m", true, there.version, "[]"}});
    (void)replace({first("m", there)});
  }
  link_.reset();  // which reports its counters to the server
  const auto scans = [&](const std::string& which) {
    return std::stoi(ask("select " + which + " from pg_stat_user_tables where schemaname = '" +
                         schema_ + "' and relname = 'holdfast_records'"));
  };
  eventually("the server has counted", [&] { return scans("seq_scan + idx_scan") >= 4 * times; });
  EXPECT_EQ(scans("seq_scan"), 0);
}

TEST_F(postgres_floor, a_row_that_vanishes_during_a_wait_for_its_lock_is_made_again) {
  ASSERT_TRUE(replace({first("m", read("m"))}));
  const client other{base_};
  other.ask("begin; select * from " + table("holdfast_records") + " for update");
  const std::string_view names[] = {"m"};
  auto locked = harness::concurrently([&] { return link_->lock(names, soon()); });
  until_a_lock_has_a_waiter();
  other.ask("delete from " + table("holdfast_records") + "; commit");
  const auto found = locked.get();
  ASSERT_TRUE(found) << found.error().what;
  EXPECT_EQ(found->front().record, "");
  EXPECT_TRUE(link_->unlock({}, 0, soon()));
}

}  // namespace
}  // namespace postgres_test
