#include <gtest/gtest.h>

#include "wait/acquire_many.hpp"

// Programs that log in differently acquire the names of several stores in the same order.
namespace {

using holdfast::engine::store_in_order;

TEST(store_order, does_not_depend_on_the_user_that_is_logged_in) {
  EXPECT_EQ(store_in_order("redis://zoe@a"), store_in_order("redis://a"));
  EXPECT_EQ(store_in_order("postgres://zoe@a/db"), store_in_order("postgres://adam@a/db"));
  EXPECT_LT(store_in_order("redis://zoe@a"), store_in_order("redis://adam@b"));
}

TEST(store_order, does_not_depend_on_the_order_of_the_servers) {
  EXPECT_EQ(store_in_order("etcd://a,z/locks"), store_in_order("etcd://z,a/locks"));
  EXPECT_EQ(store_in_order("zookeeper://me@z,a/locks"), store_in_order("zookeeper://a,z/locks"));
}

TEST(store_order, distinguishes_stores_by_all_but_the_user) {
  EXPECT_NE(store_in_order("postgres://a/one"), store_in_order("postgres://a/two"));
  EXPECT_NE(store_in_order("redis://a"), store_in_order("redis://a?dialect=redlock"));
  EXPECT_NE(store_in_order("redis://a"), store_in_order("rediss://a"));
  EXPECT_NE(store_in_order("redis+unix:///run/me@a.sock"),
            store_in_order("redis+unix:///run/you@a.sock"));
  EXPECT_NE(store_in_order("sqlite:/tmp/a@b"), store_in_order("sqlite:/tmp/b"));
}

}  // namespace
