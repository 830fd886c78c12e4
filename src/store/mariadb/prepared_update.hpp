#pragma once

#include <mysql.h>

#include <memory>
#include <optional>
#include <string_view>

#include "store/mariadb/timed_calls.hpp"
#include "store/sql/row_link.hpp"

namespace holdfast::store::mariadb {

struct tables;

/// The most frequent change of a row: a guessed replacement. The server parses the statement once.
class prepared_update {
 public:
  /// Costs one round trip. Returns null if the server refuses (max_prepared_stmt_count): then the
  /// statement is sent as text.
  static std::unique_ptr<prepared_update> make(MYSQL* c, timed_calls& calls, const tables& t);

  /// Returns how many rows were replaced; nothing after a failure, which the other functions
  /// describe. Costs one round trip.
  std::optional<std::uint64_t> run(const sql::replacement& r, timed_calls& calls);
  /// The server no longer knows the statement (1243, 1615): nothing was carried out, and the
  /// statement has to be sent as text.
  bool forgotten() const noexcept { return error() == 1243 || error() == 1615; }
  unsigned error() const noexcept { return mysql_stmt_errno(statement_.get()); }
  std::string_view said() const noexcept { return mysql_stmt_error(statement_.get()); }

 private:
  struct closed {
    void operator()(MYSQL_STMT* s) const noexcept { mysql_stmt_close(s); }
  };
  using statement = std::unique_ptr<MYSQL_STMT, closed>;
  explicit prepared_update(statement s) noexcept : statement_(std::move(s)) {}
  statement statement_;
};

}  // namespace holdfast::store::mariadb
