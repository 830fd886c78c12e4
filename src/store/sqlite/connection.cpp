#include "store/sqlite/connection.hpp"

#include <utility>

#include "store/sqlite/explain.hpp"

namespace holdfast::store::sqlite {

void connection::close() noexcept {
  if (db_ != nullptr) sqlite3_close_v2(std::exchange(db_, nullptr));
}

status connection::open(const std::string& file) {
  constexpr int how =
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int code = sqlite3_open_v2(file.c_str(), &db_, how, nullptr);
  if (code != SQLITE_OK) return explain(db_, code, "opening " + file);
  return done{};
}

status connection::open_to_read(const std::string& file, bool at_rest) {
  std::string url = "file:";
  for (const char c : file) {
    if (c == '%' || c == '?' || c == '#') {
      url += c == '%' ? "%25" : c == '?' ? "%3f" : "%23";
    } else {
      url += c;
    }
  }
  url += at_rest ? "?immutable=1" : "";
  constexpr int how =
      SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int code = sqlite3_open_v2(url.c_str(), &db_, how, nullptr);
  if (code != SQLITE_OK) return explain(db_, code, "opening " + file);
  return done{};
}

// Uses SQLite's own file object: closing another descriptor of the file would release the locks of
// this process's other connections.
bool connection::keep_log() noexcept {
  sqlite3_file* file = nullptr;
  sqlite3_file_control(db_, "main", SQLITE_FCNTL_FILE_POINTER, static_cast<void*>(&file));
  if (file == nullptr || file->pMethods == nullptr) return true;
  return (file->pMethods->xLock(file, SQLITE_LOCK_SHARED) & 0xff) != SQLITE_BUSY;
}

status connection::execute(const char* sql, std::string_view tried) {
  const int code = sqlite3_exec(db_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return explain(db_, code, tried);
  return done{};
}

result<std::int64_t> connection::ask(const char* sql, std::string_view tried) {
  const auto asked = prepare(sql, tried);
  if (!asked) return asked.error();
  const int code = sqlite3_step(asked->get());
  if (code != SQLITE_ROW && code != SQLITE_DONE) return explain(db_, code, tried);
  return code == SQLITE_ROW ? std::int64_t{sqlite3_column_int64(asked->get(), 0)} : 0;
}

result<std::string> connection::ask_text(const char* sql, std::string_view tried) {
  const auto asked = prepare(sql, tried);
  if (!asked) return asked.error();
  const int code = sqlite3_step(asked->get());
  if (code != SQLITE_ROW && code != SQLITE_DONE) return explain(db_, code, tried);
  return code == SQLITE_ROW ? std::string{text_column(asked->get(), 0)} : std::string{};
}

result<statement> connection::prepare(const char* sql, std::string_view tried) {
  sqlite3_stmt* made = nullptr;
  const int code = sqlite3_prepare_v3(db_, sql, -1, SQLITE_PREPARE_PERSISTENT, &made, nullptr);
  if (code != SQLITE_OK) return explain_reading(db_, code, tried);
  return statement{made};
}

// File locks belong to a process, so closing here does not affect the parent's. Two things must not
// happen: the checkpoint of a last connection, and memory that still records locks which this
// process never had, because the next connection to the file would believe them.
void connection::abandon() noexcept {
  if (db_ == nullptr) return;
  sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  close();
}

status writing::begin(std::string_view tried) { return on_.execute("BEGIN IMMEDIATE", tried); }

status writing::commit(std::string_view tried) { return on_.execute("COMMIT", tried); }

writing::~writing() {
  if (sqlite3_get_autocommit(on_.get()) == 0) (void)on_.execute("ROLLBACK", "rolling back");
}

int run(sqlite3_stmt* s) noexcept {
  int code = SQLITE_ROW;
  while (code == SQLITE_ROW) code = sqlite3_step(s);
  const int reset = sqlite3_reset(s);
  return code == SQLITE_DONE ? SQLITE_OK : reset;
}

void bind_text(sqlite3_stmt* s, int at, std::string_view text) noexcept {
  sqlite3_bind_text64(s, at, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

std::string_view text_column(sqlite3_stmt* s, int column) noexcept {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(s, column));
  return {text, text == nullptr ? 0 : static_cast<std::size_t>(sqlite3_column_bytes(s, column))};
}

}  // namespace holdfast::store::sqlite
