#include <holdfast/guard.hpp>

#include "fixture.hpp"
#include "harness/stale_holder.hpp"

namespace sqlite_test {
namespace {

/// The number of changed rows, in a connection of its own.
int changed_by(const std::string& file, const std::string& statement) {
  sqlite3* raw = nullptr;
  EXPECT_EQ(sqlite3_open(file.c_str(), &raw), SQLITE_OK);
  const std::unique_ptr<sqlite3, int (*)(sqlite3*)> db(raw, &sqlite3_close);
  EXPECT_EQ(sqlite3_exec(raw, statement.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
  return sqlite3_changes(raw);
}

TEST(sqlite_guard, the_write_of_a_former_holder_changes_no_row) {
  const harness::temp_dir dir;
  const std::string shop = dir.file("shop.db");
  (void)changed_by(shop,
                   "create table stock (id int primary key, left_over int not null, fence int not "
                   "null default 0); insert into stock values (7, 10, 0)");
  const auto write = [&](std::uint64_t fence) {
    return changed_by(shop, holdfast::guard::fenced_update("stock", "left_over = left_over - 1",
                                                           "id = 7", fence)) == 1;
  };
  const auto v = harness::write_after_a_pause("sqlite:" + dir.file("locks.db"), write);
  EXPECT_TRUE(v.successor);
  EXPECT_FALSE(v.stale);
  EXPECT_EQ(changed_by(shop, "update stock set id = id where left_over = 9"), 1);
}

}  // namespace
}  // namespace sqlite_test
