#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tool/demo_orders.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace holdfast::tool::demo {

/// What a buyer saw when it looked at a product.
struct seen {
  std::int64_t stock = 0;
  std::int64_t version = 0;
};

/// What must be as it was seen for a sale to be written.
struct condition {
  bool same_version = false;  ///< the optimistic form: nobody wrote since
  std::uint64_t fence = 0;    ///< greater than that of the last sale of this product; 0: no fence
};

/// What the tables say after a sale.
struct ledger {
  std::int64_t sold = 0;
  std::int64_t should_sell = 0;
  std::int64_t oversold = 0;       ///< units sold above the stock, over all products
  std::int64_t lost_updates = 0;   ///< writes over a state that their writer had not seen
  std::vector<std::string> wrong;  ///< products with sold != min(stock, demand), with the figures
};

/// The shop's database: an SQLite file. One object is one connection, for one thread, in the
/// process that opened it. Writes are made cheap (WAL, no sync), because the locks are what is
/// compared. Who finds the database locked asks again after a moment of 50 to 250 µs: SQLite's own
/// steps of up to 100 ms would make the row lock look bad. Errors are std::runtime_error.
class shop {
 public:
  /// Makes the file, with the products of the catalogue.
  static void create(const std::filesystem::path& file, const catalogue& all);

  explicit shop(const std::filesystem::path& file);
  ~shop();
  shop(const shop&) = delete;
  shop& operator=(const shop&) = delete;

  seen look(std::size_t product);
  /// Sells `units` to the order, and sets the stock to what was seen less the units, whatever it is
  /// by now: one transaction. False, and nothing changed, if the condition does not hold.
  bool sell(const order& o, std::int64_t units, const seen& before, const condition& only_if);
  /// Whether that order was sold something.
  bool has_sale(const order& o);

  /// A transaction around look() and sell(): nobody else writes until commit().
  void begin();
  void commit();
  void roll_back();

  ledger audit();

 private:
  struct finalizer {
    void operator()(sqlite3_stmt* s) const noexcept;
  };
  struct closer {
    void operator()(sqlite3* db) const noexcept;
  };
  using statement = std::unique_ptr<sqlite3_stmt, finalizer>;

  statement prepare(const char* sql);
  void run(const char* sql);
  bool step(sqlite3_stmt* s);
  void finish(sqlite3_stmt* s);
  [[noreturn]] void fail(const char* doing);

  std::unique_ptr<sqlite3, closer> db_;
  statement begin_, commit_, roll_back_, look_, write_, insert_, find_;
  bool in_transaction_ = false;
};

}  // namespace holdfast::tool::demo
