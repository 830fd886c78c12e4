#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "examples/shop/sqlite.hpp"
#include "harness/eventually.hpp"
#include "harness/process.hpp"
#include "paths.hpp"
#include "tool/demo_report.hpp"
#include "tool/fixture.hpp"

namespace tool_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string read_file(const fs::path& path) {
  std::ifstream in{path};
  return {std::istreambuf_iterator<char>{in}, {}};
}

class flash_sale : public holdfast_tool {
 protected:
  flash_sale() {
    fs::create_directory(folder.file("tmp"));
    around.environment.push_back("TMPDIR=" + folder.file("tmp"));
    write("stock.csv", "product_id,stock\nhot,60\nwarm,50\ncold,500\n");
    std::string rows = "order_id,customer,product_id,quantity\n";
    for (int i = 0; i < 400; ++i) {
      const char* product = i % 2 ? "hot" : i % 8 ? "cold" : "warm";
      rows += std::to_string(i) + ",C" + std::to_string(i % 7) + "," + product + ",2\n";
    }
    write("orders.csv", rows);
  }

  void write(const std::string& name, const std::string& text) {
    std::ofstream{folder.file(name)} << text;
  }

  words arguments(words more) const {
    more.insert(more.begin(), {"demo", "flash-sale", "--orders", folder.file("orders.csv")});
    return more;
  }

  outcome sale(words more) const { return tool(arguments(std::move(more))); }

  static json strategy(const outcome& o, const std::string& name) {
    const json all = json::parse(o.out);
    for (const auto& s : all["strategies"]) {
      if (s["strategy"] == name) return s;
    }
    throw std::runtime_error{name + " is not in " + o.out};
  }

  bool nothing_is_left_behind() const { return fs::is_empty(folder.file("tmp")); }
};

TEST_F(flash_sale, without_a_lock_more_is_sold_than_there_is_and_with_each_lock_not_one) {
  const auto o = sale({"--workers", "4", "--pause-us", "1000", "--json"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.err, "");
  EXPECT_GT(strategy(o, "no-lock")["oversold"], 0);
  EXPECT_GT(strategy(o, "no-lock")["lost_updates"], 0);
  for (const char* name : {"optimistic", "row-lock", "holdfast"}) {
    const json s = strategy(o, name);
    EXPECT_EQ(s["oversold"], 0) << s;
    EXPECT_EQ(s["lost_updates"], 0) << s;
    EXPECT_EQ(s["sold"], 60 + 50 + 300) << s;  // cold: 150 orders of two
    EXPECT_EQ(s["exact"], true) << s;
  }
  EXPECT_EQ(json::parse(o.out)["verified"], true);
  EXPECT_TRUE(nothing_is_left_behind());
}

TEST_F(flash_sale, workers_killed_while_they_hold_do_not_stop_or_spoil_the_sale) {
  const auto o = sale({"--workers", "4", "--kill", "4", "--pause-us", "2000", "--json"});
  ASSERT_EQ(o.code, 0) << o.out << o.err;
  for (const char* name : {"optimistic", "row-lock", "holdfast"}) {
    const json s = strategy(o, name);
    EXPECT_EQ(s["killed_while_buying"], 4) << s;
    EXPECT_EQ(s["exact"], true) << s;
  }
}

TEST_F(flash_sale, a_worker_killed_from_outside_is_replaced_and_its_order_done) {
  program p{command(arguments(
                {"--strategy", "holdfast", "--workers", "3", "--pause-us", "20000", "--json"})),
            around};
  std::vector<pid_t> workers;
  harness::eventually("three workers", [&] {
    // The probe of the store is a child too; the workers are three.
    workers = harness::children_of(p.pid());
    return workers.size() == 3;
  });
  ::kill(workers.back(), SIGKILL);
  const std::string out = p.out.rest();
  ASSERT_EQ(p.wait(), 0) << out << p.err.rest();
  const json s = json::parse(out)["strategies"][0];
  EXPECT_EQ(s["workers_killed"], 1) << s;
  EXPECT_EQ(s["exact"], true) << s;
}

TEST_F(flash_sale, an_interrupt_ends_all_workers_and_leaves_no_files) {
  program p{command(arguments({"--workers", "3", "--pause-us", "200000"})), around};
  std::vector<pid_t> workers;
  harness::eventually("three workers", [&] {
    workers = harness::children_of(p.pid());
    return workers.size() == 3;
  });
  p.signal(SIGINT);
  EXPECT_EQ(p.wait(), 128 + SIGINT);
  for (const pid_t w : workers) EXPECT_EQ(::kill(w, 0), -1) << "it is still there";
  EXPECT_TRUE(nothing_is_left_behind());
}

TEST_F(flash_sale, the_chosen_strategies_run_alone_and_their_files_can_be_kept) {
  const auto o = sale({"--strategy", "holdfast,no-lock", "--workers", "1", "--keep", "--json"});
  ASSERT_EQ(o.code, 0) << o.err;
  const json all = json::parse(o.out)["strategies"];
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0]["oversold"], 0) << "one worker cannot race with itself";
  const fs::path kept = fs::directory_iterator { folder.file("tmp") } -> path();
  EXPECT_TRUE(fs::exists(kept / "shop-holdfast.db"));
  EXPECT_NE(o.err.find(kept.string()), std::string::npos) << o.err;
}

TEST_F(flash_sale, a_table_and_a_verdict_for_each_strategy_are_for_people) {
  const auto o = sale({"--workers", "4", "--pause-us", "1000"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.err, "") << "no progress bar off a terminal";
  for (const char* text : {"strategy", "orders/s", "oversold", "lost updates", "wait p99",
                           "no lock", "optimistic version", "row lock", "holdfast mutex",
                           "checked by SQL", "sold = min(stock, demand) for each of 3 products"}) {
    EXPECT_NE(o.out.find(text), std::string::npos) << text << "\n" << o.out;
  }
}

TEST_F(flash_sale, the_readme_shows_the_table_as_it_is_printed) {
  const auto o = sale({"--strategy", "holdfast", "--workers", "1"});
  ASSERT_EQ(o.code, 0) << o.err;
  std::ifstream readme{HOLDFAST_SOURCE_DIR "/README.md"};
  std::string heads;
  while (std::getline(readme, heads) && !heads.starts_with("strategy ")) continue;
  EXPECT_NE(o.out.find("\n" + heads + "\n"), std::string::npos) << heads << "\n" << o.out;
}

TEST_F(flash_sale, a_progress_bar_is_drawn_on_a_terminal) {
  auto terminal = around;
  terminal.on_terminal = true;
  program p{command(arguments({"--strategy", "row-lock", "--workers", "2"})), terminal};
  p.out.until("400 orders");
  EXPECT_EQ(p.wait(), 0);
}

TEST_F(flash_sale, bad_files_are_refused_with_file_line_and_reason) {
  struct bad {
    const char* file;
    const char* text;
    const char* message;
  };
  const std::string orders = "order_id,customer,product_id,quantity\n";
  for (const auto& [file, text, message] : std::vector<bad>{
           {"orders.csv", "", "orders.csv: is empty"},
           {"orders.csv", "id,who,what,n\n1,a,hot,1\n",
            "orders.csv:1: the header must be order_id"},
           {"orders.csv", "order_id,customer,product_id,quantity\n", "has a header and no rows"},
           {"orders.csv", "order_id,customer,product_id,quantity\n1,a,hot\n",
            "orders.csv:2: 3 fields"},
           {"orders.csv", "order_id,customer,product_id,quantity\n1,a,hot,1\n1,b,hot,1\n",
            "orders.csv:3: order '1' is there twice"},
           {"orders.csv", "order_id,customer,product_id,quantity\n1,a,hot,-2\n",
            "orders.csv:2: the quantity is -2"},
           {"orders.csv", "order_id,customer,product_id,quantity\n1,a,hot,0\n",
            "orders.csv:2: the quantity is 0"},
           {"orders.csv", "order_id,customer,product_id,quantity\n1,a,hot,2x\n",
            "not a whole number"},
           {"orders.csv", "order_id,customer,product_id,quantity\n1,a,hot,99999999999999999999\n",
            "not a whole number"},
           {"orders.csv", "order_id,customer,product_id,quantity\n1,a,ice,1\n",
            "orders.csv:2: there is no stock for product 'ice'"},
           {"orders.csv", "order_id,customer,product_id,quantity\n,a,hot,1\n",
            "the order_id must have"},
           {"orders.csv", "order_id,customer,product_id,quantity\n1,\x1b[2J,hot,1\n",
            "control characters"},
           {"stock.csv", "product_id,stock\nhot,1\nhot,2\n",
            "stock.csv:3: product 'hot' is there twice"},
           {"stock.csv", "product_id,stock\nhot,-1\n", "stock.csv:2: the stock is -1"}}) {
    const std::string before = read_file(folder.file(file));
    write(file, text);
    const auto o = sale({});
    EXPECT_EQ(o.code, 66) << text;
    EXPECT_NE(o.err.find(message), std::string::npos) << message << "\n" << o.err;
    EXPECT_EQ(o.err.find('\x1b'), std::string::npos)
        << "nothing of the file reaches the terminal raw";
    write(file, before);
  }
  EXPECT_TRUE(nothing_is_left_behind());
}

TEST_F(flash_sale, a_file_from_windows_is_read_as_any_other) {
  write("orders.csv", "order_id,customer,product_id,quantity\r\n1,a,hot,3\r\n2,b,hot,99\r\n");
  const auto o = sale({"--strategy", "optimistic", "--json"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(strategy(o, "optimistic")["sold"], 60) << "an order gets what is left";
}

TEST_F(flash_sale, options_that_cannot_be_are_refused_before_anything_runs) {
  struct bad {
    words options;
    int code;
    const char* message;
  };
  for (const auto& [options, code, message] : std::vector<bad>{
           {{"--workers", "0"}, 64, "--workers: '0' is out of range: 1 to 64"},
           {{"--workers", "65"}, 64, "out of range"},
           {{"--workers", "many"}, 64, "not a whole number"},
           {{"--pause-us", "-1"}, 64, "--pause-us"},
           {{"--strategy", "rowlock"}, 64, "did you mean row-lock?"},
           {{"--strategy", ""}, 64, "--strategy"},
           {{"--store", ""}, 64, "--store: the URL is empty"},
           {{"--store", "nowhere:x"}, 64, "nowhere"},
           {{"--shop", "redis://localhost"}, 64, "neither postgres://"},
           {{"--shop", "postgres://u:a/b@h"}, 64, "write %2F for /"},
           {{"--store", "memory:"}, 78, "lives inside one process"},
           {{"--stock", "missing.csv"}, 66, "missing.csv: cannot be read: No such file"},
           {{"--bogus"}, 64, "--bogus"}}) {
    const auto o = sale(options);
    EXPECT_EQ(o.code, code) << options[0];
    EXPECT_NE(o.err.find(message), std::string::npos) << message << "\n" << o.err;
    EXPECT_EQ(o.out, "");
  }
  const auto away = sale({"--shop", "postgres://127.0.0.1:1/shop"});
  EXPECT_EQ(away.code, 69) << away.err;
  EXPECT_EQ(away.err.find('\n'), away.err.size() - 1) << "one line: " << away.err;
  EXPECT_EQ(away.err.find('\t'), away.err.npos) << away.err;
  EXPECT_EQ(tool({"demo", "flash-sale"}).code, 64) << "--orders is required";
  EXPECT_EQ(tool({"demo", "flash-sale", "--orders", folder.file("none.csv")}).code, 66);
  for (const words& option : {words{"--orders", ""}, {"--orders", "none.csv", "--stock", ""}}) {
    words asks{"demo", "flash-sale"};
    asks.insert(asks.end(), option.begin(), option.end());
    const auto unnamed = tool(asks);
    EXPECT_EQ(unnamed.code, 64);
    EXPECT_EQ(unnamed.err,
              "holdfast demo: " + option[option.size() - 2] + ": the path is empty; name a file\n");
  }
  EXPECT_EQ(tool({"demo", "fire-sale"}).code, 64);
  EXPECT_EQ(tool({"demo"}).code, 0);
  EXPECT_TRUE(nothing_is_left_behind());
}

TEST_F(flash_sale, the_bundled_orders_match_the_output_of_their_script) {
  const std::string data = HOLDFAST_SOURCE_DIR "/examples/data/";
  const auto made =
      run_to_end({"python3", data + "make_orders.py", "--out", folder.file("tmp")}, around);
  ASSERT_EQ(made.code, 0) << made.err;
  for (const char* file : {"orders.csv", "stock.csv"}) {
    EXPECT_TRUE(read_file(data + file) == read_file(folder.file("tmp/") + file)) << file;
  }
  const auto all = holdfast::tool::demo::read_catalogue(data + "stock.csv", data + "orders.csv");
  EXPECT_EQ(all.orders.size(), 20'000U);
  EXPECT_EQ(all.products.size(), 50U);
}

// ---- the books

namespace demo = holdfast::tool::demo;

class books : public testing::Test {
 protected:
  books() {
    goods.products = {{"hat", 3, 4}};
    goods.orders = {{"1", "a", 0, 2}, {"2", "b", 0, 2}};
    demo::sqlite_shop::create(file, goods);
  }
  harness::temp_dir folder;
  std::string file = folder.file("shop.db");
  demo::catalogue goods;
};

TEST_F(books, a_write_over_an_unseen_state_is_counted_as_lost_and_found_oversold) {
  demo::sqlite_shop s{file};
  const auto seen = s.look(0);
  ASSERT_TRUE(s.sell(goods.orders[0], 2, seen, {}));
  ASSERT_TRUE(s.sell(goods.orders[1], 2, seen, {}));
  const auto found = s.audit();
  EXPECT_EQ(found.sold, 4);
  EXPECT_EQ(found.should_sell, 3);
  EXPECT_EQ(found.oversold, 1);
  EXPECT_EQ(found.lost_updates, 1);
  ASSERT_EQ(found.wrong.size(), 1U);
  EXPECT_EQ(found.wrong[0], "hat: stock 3, demand 4, sold 4, stock left 1");
}

TEST_F(books, a_write_with_another_version_or_an_older_fence_changes_nothing) {
  demo::sqlite_shop s{file};
  const auto seen = s.look(0);
  ASSERT_TRUE(s.sell(goods.orders[0], 2, seen, {.fence = 7}));
  EXPECT_FALSE(s.sell(goods.orders[1], 1, seen, {.same_version = true}));
  EXPECT_FALSE(s.sell(goods.orders[1], 1, s.look(0), {.fence = 6}));
  EXPECT_FALSE(s.has_sale(goods.orders[1]));
  EXPECT_EQ(s.audit().sold, 2);
  EXPECT_EQ(s.look(0).stock, 1);
}

TEST_F(books, a_strategy_that_breaks_its_promise_fails_and_names_the_product) {
  demo::sale_result right, wrong;
  right.how = demo::strategy::no_lock;
  wrong.how = demo::strategy::holdfast_mutex;
  wrong.books.oversold = 1;
  wrong.books.wrong = {"hat: stock 3, demand 4, sold 4, stock left 1"};
  EXPECT_FALSE(demo::all_kept({right, wrong}));
  EXPECT_TRUE(demo::all_kept({right}));
  const std::string text = demo::verdicts({}, {right, wrong});
  EXPECT_NE(text.find("holdfast mutex should be right and is not:\n  hat: stock 3"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace tool_test
