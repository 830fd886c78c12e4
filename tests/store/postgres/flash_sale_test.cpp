#include "paths.hpp"
#ifdef HOLDFAST_TOOL  // a lane may be built without the program
#include "harness/flash_sale.hpp"

#include "fixture.hpp"

// The shop of the demo on this server: with the lock in the same server, in both of its modes.
namespace postgres_test {
namespace {

class postgres_shop : public postgres_store {
 protected:
  /// A database of its own: the shop's tables have unique names only by chance.
  postgres_shop() { ask("create database " + schema_); }
  ~postgres_shop() override { ask("drop database " + schema_ + " with (force)"); }
  const std::string shop_ = base_.substr(0, base_.rfind('/') + 1) + schema_;
};

TEST_F(postgres_shop, its_books_count_each_sale_once_and_each_lost_update) {
  harness::expect_right_books(shop_);
}

TEST_F(postgres_shop, a_sale_is_right_with_each_way_of_locking_and_leaves_no_tables) {
  const auto all = harness::flash_sale(shop_, url("&mode=session"), 30, {});
  EXPECT_EQ(all["strategies"].size(), 4u);
  EXPECT_EQ(all["verified"], true) << all;
  EXPECT_EQ(client(shop_).ask("select count(*) from pg_tables where schemaname = 'public'"), "0");
}

TEST_F(postgres_shop, workers_that_are_killed_spoil_nothing) {
  harness::expect_no_harm_by_kills(shop_, url());
}

// The lock ends with the connection, while the last commit may be on its way.
TEST_F(postgres_shop, workers_that_are_killed_with_locks_of_their_connections_spoil_nothing) {
  harness::expect_no_harm_by_kills(shop_, url("&mode=session"));
}

}  // namespace
}  // namespace postgres_test
#endif
