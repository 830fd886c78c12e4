#include "paths.hpp"
#ifdef HOLDFAST_TOOL  // a lane may be built without the program
#include "harness/flash_sale.hpp"

#include "fixture.hpp"

// The shop of the demo on this server: with the lock in the same server, in both of its modes.
namespace mariadb_test {
namespace {

class mariadb_shop : public mariadb_store {
 protected:
  mariadb_shop() { ask("create database " + database_); }
  const std::string shop_ = url();
};

TEST_F(mariadb_shop, its_books_count_each_sale_once_and_each_lost_update) {
  harness::expect_right_books(shop_);
}

TEST_F(mariadb_shop, a_sale_is_right_with_each_way_of_locking_and_leaves_no_tables) {
  const auto all = harness::flash_sale(shop_, url("?mode=session"), 30, {});
  EXPECT_EQ(all["strategies"].size(), 4u);
  EXPECT_EQ(all["verified"], true) << all;
  EXPECT_EQ(ask("show tables from " + database_ + " like 'holdfast_demo%'"), "");
}

TEST_F(mariadb_shop, workers_that_are_killed_spoil_nothing) {
  harness::expect_no_harm_by_kills(shop_, url());
}

// The lock ends with the connection, while the last commit may be on its way.
TEST_F(mariadb_shop, workers_that_are_killed_with_locks_of_their_connections_spoil_nothing) {
  harness::expect_no_harm_by_kills(shop_, url("?mode=session"));
}

}  // namespace
}  // namespace mariadb_test
#endif
