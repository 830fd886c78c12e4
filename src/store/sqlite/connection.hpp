#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <holdfast/result.hpp>
#include <memory>
#include <string>
#include <string_view>

namespace holdfast::store::sqlite {

struct statement_closer {
  void operator()(sqlite3_stmt* s) const noexcept { sqlite3_finalize(s); }
};
using statement = std::unique_ptr<sqlite3_stmt, statement_closer>;

/// One SQLite connection. Not thread-safe: a thread that uses it holds the store's mutex.
class connection {
 public:
  connection() noexcept = default;
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;
  ~connection() { close(); }

  /// Creates the file if it does not exist.
  status open(const std::string& file);
  /// `at_rest`: no process has the file open, and this user may not create the files beside it.
  status open_to_read(const std::string& file, bool at_rest);
  /// For a file that was opened at rest: keeps a log that is created meanwhile until this
  /// connection is closed. The last of the other connections removes the log only when it has the
  /// file for itself. Returns false if another connection is removing the log now.
  bool keep_log() noexcept;
  sqlite3* get() const noexcept { return db_; }

  status execute(const char* sql, std::string_view tried);
  /// Returns the first column of the first row; 0 without a row.
  result<std::int64_t> ask(const char* sql, std::string_view tried);
  result<std::string> ask_text(const char* sql, std::string_view tried);
  result<statement> prepare(const char* sql, std::string_view tried);

  void close() noexcept;
  /// In a child process: closes the parent's connection without touching the file.
  void abandon() noexcept;

 private:
  sqlite3* db_ = nullptr;
};

/// A write transaction: rolled back unless commit() succeeded.
class writing {
 public:
  explicit writing(connection& on) noexcept : on_(on) {}
  writing(const writing&) = delete;
  writing& operator=(const writing&) = delete;
  ~writing();
  status begin(std::string_view tried);
  status commit(std::string_view tried);

 private:
  connection& on_;
};

/// Steps to the end and resets; for statements whose rows are not needed. Returns a SQLite result
/// code.
int run(sqlite3_stmt* s) noexcept;
void bind_text(sqlite3_stmt* s, int at, std::string_view text) noexcept;
std::string_view text_column(sqlite3_stmt* s, int column) noexcept;

}  // namespace holdfast::store::sqlite
