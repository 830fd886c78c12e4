#include "examples/shop/sqlite.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <chrono>
#include <random>
#include <stdexcept>
#include <thread>

namespace flash_sale {
namespace {

constexpr const char* schema = R"(
  PRAGMA journal_mode = WAL;
  CREATE TABLE product(
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, initial INTEGER NOT NULL, demand INTEGER NOT NULL,
    stock INTEGER NOT NULL, version INTEGER NOT NULL DEFAULT 0,
    lost_updates INTEGER NOT NULL DEFAULT 0, last_fence INTEGER NOT NULL DEFAULT 0) STRICT;
  CREATE TABLE sale(
    order_id TEXT PRIMARY KEY, customer TEXT NOT NULL, product INTEGER NOT NULL,
    wanted INTEGER NOT NULL, quantity INTEGER NOT NULL, fence INTEGER NOT NULL)
    STRICT, WITHOUT ROWID;)";

// ?1 product, ?2 the new stock, ?3 the version that was seen, ?4 whether it must be that one, ?5
// fence
constexpr const char* write_sql = R"(
  UPDATE product SET stock = ?2, version = version + 1, last_fence = ?5,
    lost_updates = lost_updates + (version <> ?3)
  WHERE id = ?1 AND (NOT ?4 OR version = ?3) AND (?5 = 0 OR last_fence <= ?5))";

constexpr const char* sold_by_product = R"(
  WITH sold(id, units) AS (
    SELECT product.id, coalesce(sum(sale.quantity), 0)
    FROM product LEFT JOIN sale ON sale.product = product.id GROUP BY product.id) )";

constexpr const char* totals_sql = R"(
  SELECT sum(units), sum(min(initial, demand)), sum(max(0, units - initial)), sum(lost_updates)
  FROM product JOIN sold USING (id))";

constexpr const char* wrong_sql = R"(
  SELECT name, initial, demand, units, stock FROM product JOIN sold USING (id)
  WHERE units <> min(initial, demand) OR initial - stock <> units 
  ORDER BY units - min(initial, demand) DESC, name)";

constexpr int give_up_after = 200'000;  // tries: half a minute

int wait_a_moment(void*, int tries) {
  if (tries >= give_up_after) return 0;
  thread_local std::minstd_rand random{std::random_device{}()};
  std::this_thread::sleep_for(std::chrono::microseconds{50 + random() % 200});
  return 1;
}

void bind(sqlite3_stmt* s, int at, std::int64_t value) { sqlite3_bind_int64(s, at, value); }

void bind(sqlite3_stmt* s, int at, const std::string& text) {
  sqlite3_bind_text(s, at, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
}

template <class... Values>
void bind_all(sqlite3_stmt* s, const Values&... values) {
  int at = 0;
  (bind(s, ++at, values), ...);
}

std::string text_of(sqlite3_stmt* s, int column) {
  return reinterpret_cast<const char*>(sqlite3_column_text(s, column));
}

std::int64_t as_signed(std::size_t n) { return static_cast<std::int64_t>(n); }

}  // namespace

void sqlite_shop::finalizer::operator()(sqlite3_stmt* s) const noexcept { sqlite3_finalize(s); }
void sqlite_shop::closer::operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }

void sqlite_shop::create(const std::filesystem::path& file, const catalogue& all) {
  sqlite3* raw = nullptr;
  const int opened = sqlite3_open(file.c_str(), &raw);
  const std::unique_ptr<sqlite3, closer> db{raw};
  const auto must = [&](int code) {
    if (code != SQLITE_OK && code != SQLITE_DONE) {
      throw std::runtime_error{
          fmt::format("the shop {} cannot be made: {}", file.string(), sqlite3_errmsg(raw))};
    }
  };
  must(opened);
  must(sqlite3_exec(raw, schema, nullptr, nullptr, nullptr));
  must(sqlite3_exec(raw, "PRAGMA synchronous = OFF; BEGIN", nullptr, nullptr, nullptr));
  sqlite3_stmt* insert = nullptr;
  must(sqlite3_prepare_v2(
      raw, "INSERT INTO product(id, name, initial, demand, stock) VALUES(?1, ?2, ?3, ?4, ?3)", -1,
      &insert, nullptr));
  const statement owned{insert};
  for (std::size_t i = 0; i < all.products.size(); ++i) {
    const auto& p = all.products[i];
    bind_all(insert, as_signed(i), p.name, p.stock, p.demand);
    must(sqlite3_step(insert));
    sqlite3_reset(insert);
  }
  must(sqlite3_exec(raw, "COMMIT", nullptr, nullptr, nullptr));
}

sqlite_shop::sqlite_shop(const std::filesystem::path& file) {
  sqlite3* raw = nullptr;
  const int opened = sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr);
  db_.reset(raw);
  if (opened != SQLITE_OK) fail("opening");
  sqlite3_busy_handler(raw, wait_a_moment, nullptr);
  run("PRAGMA synchronous = OFF");
  begin_ = prepare("BEGIN IMMEDIATE");
  commit_ = prepare("COMMIT");
  roll_back_ = prepare("ROLLBACK");
  claim_ = prepare("UPDATE product SET last_fence = ?2 WHERE id = ?1 AND last_fence < ?2");
  look_ = prepare("SELECT stock, version FROM product WHERE id = ?1");
  write_ = prepare(write_sql);
  insert_ = prepare("INSERT INTO sale VALUES(?1, ?2, ?3, ?4, ?5, ?6)");
  find_ = prepare("SELECT 1 FROM sale WHERE order_id = ?1");
}

sqlite_shop::~sqlite_shop() = default;

bool sqlite_shop::claim(std::size_t product, std::uint64_t fence) {
  bind_all(claim_.get(), as_signed(product), static_cast<std::int64_t>(fence));
  finish(claim_.get());
  return sqlite3_changes(db_.get()) == 1;
}

seen sqlite_shop::look(std::size_t product) {
  bind_all(look_.get(), as_signed(product));
  if (!step(look_.get())) fail("looking for a product");
  const seen found{sqlite3_column_int64(look_.get(), 0), sqlite3_column_int64(look_.get(), 1)};
  sqlite3_reset(look_.get());
  return found;
}

bool sqlite_shop::sell(const order& o, std::int64_t units, const seen& before,
                       const condition& only_if) {
  const bool own = !in_transaction_;
  const auto fence = static_cast<std::int64_t>(only_if.fence);
  if (own) begin();
  bind_all(write_.get(), as_signed(o.product), before.stock - units, before.version,
           std::int64_t{only_if.same_version}, fence);
  finish(write_.get());
  if (sqlite3_changes(db_.get()) == 0) {
    if (own) roll_back();
    return false;
  }
  bind_all(insert_.get(), o.id, o.customer, as_signed(o.product), o.quantity, units, fence);
  finish(insert_.get());
  if (own) commit();
  return true;
}

bool sqlite_shop::has_sale(const order& o) {
  bind_all(find_.get(), o.id);
  const bool found = step(find_.get());
  sqlite3_reset(find_.get());
  return found;
}

void sqlite_shop::begin() {
  finish(begin_.get());
  in_transaction_ = true;
}

void sqlite_shop::commit() {
  finish(commit_.get());
  in_transaction_ = false;
}

void sqlite_shop::roll_back() {
  finish(roll_back_.get());
  in_transaction_ = false;
}

ledger sqlite_shop::audit() {
  const std::string sold{sold_by_product};
  ledger found;
  const auto totals = prepare((sold + totals_sql).c_str());
  if (!step(totals.get())) fail("adding up the sales");
  found.sold = sqlite3_column_int64(totals.get(), 0);
  found.should_sell = sqlite3_column_int64(totals.get(), 1);
  found.oversold = sqlite3_column_int64(totals.get(), 2);
  found.lost_updates = sqlite3_column_int64(totals.get(), 3);
  const auto wrong = prepare((sold + wrong_sql).c_str());
  while (step(wrong.get())) {
    found.wrong.push_back(
        fmt::format("{}: stock {}, demand {}, sold {}, stock left {}", text_of(wrong.get(), 0),
                    sqlite3_column_int64(wrong.get(), 1), sqlite3_column_int64(wrong.get(), 2),
                    sqlite3_column_int64(wrong.get(), 3), sqlite3_column_int64(wrong.get(), 4)));
  }
  return found;
}

sqlite_shop::statement sqlite_shop::prepare(const char* sql) {
  sqlite3_stmt* s = nullptr;
  if (sqlite3_prepare_v2(db_.get(), sql, -1, &s, nullptr) != SQLITE_OK)
    fail("preparing a statement");
  return statement{s};
}

void sqlite_shop::run(const char* sql) {
  if (sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail(sql);
}

bool sqlite_shop::step(sqlite3_stmt* s) {
  const int code = sqlite3_step(s);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) fail(sqlite3_sql(s));
  return false;
}

void sqlite_shop::finish(sqlite3_stmt* s) {
  while (step(s)) {
  }
  sqlite3_reset(s);
}

void sqlite_shop::fail(const char* doing) {
  throw std::runtime_error{
      fmt::format("the shop's database: {}: {}", doing, sqlite3_errmsg(db_.get()))};
}

}  // namespace flash_sale
