#include <holdfast/guard.hpp>

#include "fixture.hpp"
#include "harness/stale_holder.hpp"

namespace mariadb_test {
namespace {

using mariadb_guard = mariadb_store;

TEST_F(mariadb_guard, the_write_of_a_former_holder_changes_no_row) {
  (void)open();  // creates the database
  (void)ask("create table " + table("stock") +
            " (id int primary key, left_over int not null, fence bigint not null default 0)");
  (void)ask("insert into " + table("stock") + " values (7, 10, 0)");
  const auto write = [&](std::uint64_t fence) {
    const client own(port());
    (void)own.ask(holdfast::guard::fenced_update(table("stock"), "left_over = left_over - 1",
                                                 "id = 7", fence));
    return own.ask("select row_count()") == "1";
  };
  const auto v = harness::write_after_a_pause(url(), write);
  EXPECT_TRUE(v.successor);
  EXPECT_FALSE(v.stale);
  EXPECT_EQ(ask("select left_over from " + table("stock")), "9");
}

// As docs/fences.md says of this server.
TEST_F(mariadb_guard, a_write_that_repeats_one_counts_no_row_unless_found_rows_are_counted) {
  (void)ask("create database `" + database_ + "`; create table " + table("stock") +
            " (id int primary key, left_over int not null, fence bigint not null default 0); "
            "insert into " +
            table("stock") + " values (7, 10, 0)");
  const auto write = holdfast::guard::fenced_update(table("stock"), "left_over = 9", "id = 7", 5);
  const auto counted = [&](unsigned long flags) {
    const std::unique_ptr<MYSQL, void (*)(MYSQL*)> own(mysql_init(nullptr), &mysql_close);
    EXPECT_NE(mysql_real_connect(own.get(), "127.0.0.1", "admin", "", nullptr,
                                 static_cast<unsigned>(port()), nullptr, flags),
              nullptr);
    EXPECT_EQ(mysql_query(own.get(), write.c_str()), 0) << mysql_error(own.get());
    return mysql_affected_rows(own.get());
  };
  EXPECT_EQ(counted(0), 1u);
  EXPECT_EQ(counted(0), 0u);
  EXPECT_EQ(counted(CLIENT_FOUND_ROWS), 1u);
}

}  // namespace
}  // namespace mariadb_test
