#include "tool/demo.hpp"

#include <stdlib.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tool/cli_values.hpp"
#include "tool/demo_report.hpp"
#include "tool/demo_sale.hpp"
#include "tool/exit_code.hpp"
#include "tool/failure.hpp"
#include "tool/nearest.hpp"
#include "tool/store_url.hpp"
#include "tool/text.hpp"

namespace holdfast::tool::demo {
namespace {

constexpr int no_input = 66;  // EX_NOINPUT
constexpr std::uint32_t default_workers = 8;
constexpr std::uint32_t default_pause_us = 400;

constexpr const char* about =
    "Many buyers in many processes share stock: what each way of locking costs, and what happens\n"
    "without one.";

constexpr const char* footer =
    "Each strategy gets a new shop: an SQLite file, or tables of its own in the database of "
    "--shop.\n"
    "For every order a worker reads the stock, waits as long as a payment takes, and then writes\n"
    "the stock that it has read, minus the items sold, and the sale. If less is left than was "
    "ordered, "
    "the\n"
    "order gets the rest. The strategies differ in how they protect these steps:\n"
    "  no-lock     not at all\n"
    "  optimistic  the write succeeds only if the stock has not changed; else read and pay again\n"
    "  row-lock    one transaction: BEGIN IMMEDIATE on SQLite, which locks the whole file, or\n"
    "              SELECT … FOR UPDATE on a server\n"
    "  holdfast    a holdfast::mutex for each product, and its fence in the write\n"
    "The shop itself is fast (WAL, no sync; synchronous_commit=off on PostgreSQL; MariaDB as it "
    "is\n"
    "configured), so that the locks are what is measured. A wait is the time from the beginning\n"
    "of an order to the read that counted: the wait for the lock, or attempts in vain. At the end\n"
    "SQL adds up the sales: all strategies but no-lock must have sold min(stock, demand) of every\n"
    "product.\n\n"
    "Exit code: 0 all right; 1 a product was sold wrongly; 64 usage; 66 a file is missing or bad;\n"
    "69 the store cannot be used.\n";

/// A temporary folder that is removed at the end.
class work_folder {
 public:
  explicit work_folder(bool keep) : keep_{keep} {
    auto name = (std::filesystem::temp_directory_path() / "holdfast-demo-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::system_error{errno, std::generic_category(), name};
    path_ = name;
  }
  ~work_folder() {
    std::error_code ignored;
    if (!keep_) std::filesystem::remove_all(path_, ignored);
  }
  work_folder(const work_folder&) = delete;
  work_folder& operator=(const work_folder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::string name() const { return path_.filename().string(); }

 private:
  bool keep_;
  std::filesystem::path path_;
};

struct settings {
  std::filesystem::path orders, stock;
  std::string store;  ///< empty: a file of the demo's own
  std::string shop;   ///< empty: the same, one for each strategy
  std::vector<strategy> how;
  sale_settings sale;
  std::chrono::microseconds pause{};
  bool json = false;
  bool keep = false;
};

using word = std::optional<std::string>;

struct words {
  word orders, stock, store, shop, workers, pause, kills, how;
  bool json = false, keep = false;

  void add_to(CLI::App& app) {
    app.get_formatter()->column_width(30);
    app.add_option("--orders", orders, "order_id,customer,product_id,quantity below a header row")
        ->type_name("FILE")
        ->required();
    app.add_option("--stock", stock, "product_id,stock; default: stock.csv beside the orders")
        ->type_name("FILE");
    app.add_option("--workers", workers, "processes that buy, 1 to 64; default 8")->type_name("N");
    app.add_option("--store", store, "where the mutexes are; default: an SQLite file of its own")
        ->type_name("URL");
    app.add_option("--shop", shop,
                   "the database that sells: postgres:// or mariadb://; default: an SQLite file")
        ->type_name("URL");
    app.add_option("--strategy", how, "no-lock, optimistic, row-lock, holdfast; default: all")
        ->type_name("NAME,…");
    app.add_option("--pause-us", pause, "how long a payment takes, in microseconds; default 400")
        ->type_name("N");
    app.add_option("--kill", kills, "kill -9 that many workers in the middle of a purchase")
        ->type_name("N");
    app.add_flag("--keep", keep, "leave the shops behind, and say where");
    app.add_flag("--json", json, "the results as JSON");
  }
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in{text};
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

std::vector<strategy> strategies_of(const word& given) {
  const auto names = given ? split(*given) : std::vector<std::string>{};
  if (given && names.empty()) throw failure_exit{exit_code::usage, "--strategy: the list is empty"};
  std::vector<std::string> known;
  for (const auto& s : strategies) known.emplace_back(s.key);
  std::vector<strategy> chosen;
  for (const auto& s : strategies) {
    const bool asked = std::find(names.begin(), names.end(), s.key) != names.end();
    if (names.empty() || asked) chosen.push_back(s.what);
  }
  for (const auto& n : names) {
    if (std::find(known.begin(), known.end(), n) != known.end()) continue;
    throw failure_exit{exit_code::usage,
                       "--strategy: '" + printable(n) +
                           "' is not one of no-lock, optimistic, row-lock, holdfast" +
                           did_you_mean(n, known)};
  }
  return chosen;
}

settings settings_of(const words& w) {
  settings s;
  for (const auto& [option, file] : {std::pair{"--orders", w.orders}, {"--stock", w.stock}}) {
    if (!file || !file->empty()) continue;
    throw failure_exit{exit_code::usage, std::string(option) + ": the path is empty; name a file"};
  }
  s.orders = *w.orders;
  s.stock = w.stock ? std::filesystem::path{*w.stock} : s.orders.parent_path() / "stock.csv";
  s.store = w.store.value_or("");
  if (w.store && s.store.empty()) throw failure_exit{exit_code::usage, "--store: the URL is empty"};
  s.shop = w.shop.value_or("");
  if (w.shop) check_shop_url(s.shop);
  s.how = strategies_of(w.how);
  s.sale.workers = number_or({"--workers", w.workers}, 1, max_workers, default_workers);
  s.sale.kills = number_or({"--kill", w.kills}, 0, 100, 0);
  s.pause =
      std::chrono::microseconds{number_or({"--pause-us", w.pause}, 0, 1'000'000, default_pause_us)};
  s.json = w.json;
  s.keep = w.keep;
  return s;
}

conditions conditions_of(const settings& s, const catalogue& all, const std::string& store) {
  conditions c;
  c.orders_file = printable(s.orders.string());
  c.orders = all.orders.size();
  c.products = all.products.size();
  for (const auto& p : all.products) {
    c.stock += p.stock;
    c.demand += p.demand;
  }
  c.workers = s.sale.workers;
  c.pause = s.pause;
  c.store = printable(without_secrets(store));
  c.shop = s.shop.empty() ? "SQLite" : printable(without_secrets(s.shop));
  return c;
}

/// A shop of its own for each strategy of each run.
shop_place node_of(const settings& s, const work_folder& folder, const strategy_name& how) {
  std::string key{how.key};
  if (s.shop.empty()) return {"sqlite:" + (folder.path() / ("shop-" + key + ".db")).string()};
  std::replace(key.begin(), key.end(), '-', '_');
  std::string prefix = folder.name() + '_' + key;
  std::replace(prefix.begin(), prefix.end(), '-', '_');
  return {s.shop, prefix};
}

/// Removes the tables of a shop on a server at the end.
class tables_of {
 public:
  tables_of(const shop_place& at, bool keep) : at_{at}, keep_{keep} {}
  ~tables_of() {
    if (keep_) return;
    try {
      remove_shop(at_);
    } catch (const std::exception&) {  // the server is gone, and nobody asked for the tables
    }
  }
  tables_of(const tables_of&) = delete;
  tables_of& operator=(const tables_of&) = delete;

 private:
  const shop_place& at_;
  bool keep_;
};

sale_result run_one(const settings& s, const catalogue& all, const work_folder& folder,
                    const std::string& store, strategy how) {
  const auto& name = name_of(how);
  const task t{how, node_of(s, folder, name), store, "flash-sale:" + folder.name() + ":", s.pause};
  const tables_of tables{t.shop, s.keep};
  progress_line line{name.title, all.orders.size()};
  return hold_sale(t, all, s.sale, [&](std::size_t done) { line.draw(done); });
}

std::string where_kept(const settings& s, const work_folder& folder) {
  if (s.shop.empty()) return "the shops are in " + folder.path().string();
  const auto name = node_of(s, folder, name_of(s.how.front())).prefix;
  return "the shops are tables like " + name + "_product in " + without_secrets(s.shop);
}

int flash_sale(const settings& s) {
  const catalogue all = read_catalogue(s.stock, s.orders);
  const work_folder folder{s.keep};
  const std::string store =
      s.store.empty() ? "sqlite:" + (folder.path() / "locks.db").string() : s.store;
  const auto is_holdfast = [](strategy how) { return how == strategy::holdfast_mutex; };
  if (std::any_of(s.how.begin(), s.how.end(), is_holdfast)) try_store(store);

  const conditions c = conditions_of(s, all, store);
  if (!s.json) std::fputs((headline(c) + "\n").c_str(), stdout), std::fflush(stdout);
  std::vector<sale_result> results;
  for (const strategy how : s.how) results.push_back(run_one(s, all, folder, store, how));
  std::fputs(s.json ? as_json(c, results).c_str()
                    : (results_table(results) + "\n" + verdicts(c, results)).c_str(),
             stdout);
  if (s.keep) std::fprintf(stderr, "%s\n", where_kept(s, folder).c_str());
  return all_kept(results) ? exit_code::ok : 1;
}

int say(int code, std::string_view message) {
  const std::string line = escaped(one_line(unsigned_message(message)));
  std::fprintf(stderr, "holdfast demo: %s\n", line.c_str());
  return code;
}

/// CLI11 takes the words in reverse.
std::vector<std::string> reversed(std::span<char* const> args) {
  return {std::make_reverse_iterator(args.end()), std::make_reverse_iterator(args.begin())};
}

int parse_and_run(std::span<char* const> args) {
  CLI::App app{about, "holdfast demo flash-sale"};
  app.footer(footer);
  words w;
  w.add_to(app);
  try {
    auto given = reversed(args);
    blank_secrets(args);
    app.parse(std::move(given));
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return exit_code::ok;
  } catch (const CLI::ParseError& e) {
    return say(exit_code::usage, std::string{e.what()} + "; see holdfast demo flash-sale --help");
  }
  return flash_sale(settings_of(w));
}

constexpr const char* list =
    "holdfast demo flash-sale --orders FILE   many buyers share stock, with and without a lock\n"
    "Try: holdfast demo flash-sale --orders examples/data/orders.csv --workers 8\n";

int choose(std::span<char* const> args) {
  const std::string name = args.empty() ? "" : args.front();
  if (name == "flash-sale") return parse_and_run(args.subspan(1));
  if (name.empty() || name == "--help" || name == "-h") {
    std::fputs(list, stdout);
    return exit_code::ok;
  }
  return say(exit_code::usage, "there is no demo '" + quotable(name) + "'; there is: flash-sale");
}

}  // namespace
}  // namespace holdfast::tool::demo

int demo_main(std::span<char* const> args) {
  namespace demo = holdfast::tool::demo;
  try {
    return demo::choose(args);
  } catch (const demo::stopped& e) {
    return holdfast::tool::exit_code::of_signal(e.signal);
  } catch (const holdfast::tool::failure_exit& e) {
    return demo::say(e.code(), e.what());
  } catch (const demo::bad_file& e) {
    return demo::say(demo::no_input, e.what());
  } catch (const std::exception& e) {
    return demo::say(holdfast::tool::exit_code::own_failure, e.what());
  }
}
