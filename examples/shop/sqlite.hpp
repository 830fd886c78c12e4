#pragma once

#include <filesystem>
#include <memory>

#include "examples/shop/shop.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace flash_sale {

/// An SQLite file. Writes are cheap (WAL, no sync), because the locks are compared. A worker that
/// finds the database locked retries after 50 to 250 µs: SQLite's own steps of up to 100 ms would
/// make the row lock look bad.
class sqlite_shop final : public shop {
 public:
  static void create(const std::filesystem::path& file, const catalogue& all);

  explicit sqlite_shop(const std::filesystem::path& file);
  ~sqlite_shop() override;
  sqlite_shop(const sqlite_shop&) = delete;
  sqlite_shop& operator=(const sqlite_shop&) = delete;

  bool claim(std::size_t product, std::uint64_t fence) override;
  seen look(std::size_t product) override;
  bool sell(const order& o, std::int64_t units, const seen& before,
            const condition& only_if) override;
  bool has_sale(const order& o) override;
  void begin() override;
  void commit() override;
  ledger audit() override;

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
  void roll_back();
  [[noreturn]] void fail(const char* doing);

  std::unique_ptr<sqlite3, closer> db_;
  statement begin_, commit_, roll_back_, claim_, look_, write_, insert_, find_;
  bool in_transaction_ = false;
};

}  // namespace flash_sale
