#include <holdfast/guard.hpp>

#include "fixture.hpp"
#include "harness/stale_holder.hpp"

namespace mariadb_test {
namespace {

using mariadb_guard = mariadb_store;

TEST_F(mariadb_guard, the_write_of_a_former_holder_changes_no_row) {
  (void)open();  // makes the database
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

}  // namespace
}  // namespace mariadb_test
