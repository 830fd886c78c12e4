#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "examples/shop/server.hpp"
#include "harness/concurrently.hpp"
#include "harness/program.hpp"
#include "harness/temp_dir.hpp"
#include "paths.hpp"
#include "tool/demo_shops.hpp"

/// The flash sale of the demo, with the shop on a server. For test folders that link the program's
/// parts.
namespace harness {

/// Few orders, of two pieces each. With a stock of 30 of each of the two products, half of the
/// orders find the shop sold out; with 60, none.
inline nlohmann::json flash_sale(const std::string& shop, const std::string& store, int stock,
                                 std::vector<std::string> more) {
  const temp_dir folder;
  std::ofstream(folder.file("stock.csv"))
      << "product_id,stock\nhot," << stock << "\nit's," << stock << '\n';
  std::ofstream orders(folder.file("orders.csv"));
  orders << "order_id,customer,product_id,quantity\n";
  for (int i = 0; i < 60; ++i) orders << i << ",C'" << i % 7 << (i % 2 ? ",hot,2\n" : ",it's,2\n");
  orders.close();
  std::vector<std::string> words{
      HOLDFAST_TOOL, "demo",  "flash-sale", "--orders", folder.file("orders.csv"),
      "--shop",      shop,    "--store",    store,      "--workers",
      "3",           "--json"};
  words.insert(words.end(), more.begin(), more.end());
  const auto o = run_to_end(words, {});
  EXPECT_EQ(o.code, 0) << o.out << o.err;
  return nlohmann::json::parse(o.out);
}

/// With each of the two strategies that lock, a worker dies while it holds the lock, and orders are
/// left.
inline void expect_no_harm_by_kills(const std::string& shop, const std::string& store) {
  const auto all = flash_sale(
      shop, store, 60, {"--kill", "1", "--pause-us", "30000", "--strategy", "row-lock,holdfast"});
  EXPECT_EQ(all["verified"], true) << all;
  ASSERT_EQ(all["strategies"].size(), 2u);
  for (const auto& s : all["strategies"]) {
    EXPECT_GE(s["killed_while_buying"], 1) << s;
    EXPECT_EQ(s["sold"], 120) << s;
  }
}

/// Tests the tables by themselves, in a database where "shop_" is free.
inline void expect_right_books(const std::string& url) {
  namespace demo = holdfast::tool::demo;
  const demo::shop_place at{url, "shop"};
  demo::catalogue goods;
  goods.products = {{"it's a hat", 3, 4}};
  goods.orders = {{"1", "a", 0, 2}, {"2'", "b\\", 0, 2}};
  demo::create_shop(at, goods);
  const auto a = demo::open_shop(at), b = demo::open_shop(at);

  const auto seen = a->look(0);
  EXPECT_TRUE(a->sell(goods.orders[0], 2, seen, {.fence = 7}));
  EXPECT_TRUE(b->has_sale(goods.orders[0]));
  EXPECT_FALSE(b->sell(goods.orders[1], 1, seen, {.same_version = true}));
  EXPECT_FALSE(b->sell(goods.orders[1], 1, b->look(0), {.fence = 6}));
  EXPECT_FALSE(b->has_sale(goods.orders[1]));
  EXPECT_EQ(a->look(0).stock, 1);
  EXPECT_TRUE(b->claim(0, 9));
  EXPECT_FALSE(a->claim(0, 8));
  EXPECT_FALSE(a->sell(goods.orders[1], 1, a->look(0), {.fence = 8})) << "nothing was sold since";
  EXPECT_FALSE(a->has_sale(goods.orders[1]));

  EXPECT_TRUE(a->sell(goods.orders[0], 2, a->look(0), {})) << "the same order once more";
  EXPECT_EQ(a->look(0).stock, 1);
  EXPECT_EQ(a->audit().sold, 2);

  a->begin();
  (void)a->look(0);
  EXPECT_TRUE(a->sell(goods.orders[1], 2, seen, {})) << "over a state that it has not seen";
  std::promise<void> begun;
  auto after = harness::concurrently([&] {
    begun.set_value();
    return b->claim(0, 11) ? b->look(0).version : -1;
  });
  begun.get_future().wait();
  a->commit();
  EXPECT_EQ(after.get(), 2) << "the write that was on its way";
  const auto found = a->audit();
  EXPECT_EQ(found.sold, 4);
  EXPECT_EQ(found.should_sell, 3);
  EXPECT_EQ(found.oversold, 1);
  EXPECT_EQ(found.lost_updates, 1);
  ASSERT_EQ(found.wrong.size(), 1u);
  EXPECT_EQ(found.wrong[0], "it's a hat: stock 3, demand 4, sold 4, stock left 1");
  demo::remove_shop(at);
}

}  // namespace harness
