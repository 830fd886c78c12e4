#include "store/mariadb/prepared_update.hpp"

#include <array>
#include <string>
#include <utility>

#include "store/mariadb/statements.hpp"

namespace holdfast::store::mariadb {

namespace {

// The client library only reads it.
MYSQL_BIND bytes(std::string_view value) {
  MYSQL_BIND b{};
  b.buffer_type = MYSQL_TYPE_BLOB;
  b.buffer = const_cast<char*>(value.data());
  b.buffer_length = value.size();
  return b;
}

MYSQL_BIND number(std::int64_t& value) {
  MYSQL_BIND b{};
  b.buffer_type = MYSQL_TYPE_LONGLONG;
  b.buffer = &value;
  return b;
}

}  // namespace

std::unique_ptr<prepared_update> prepared_update::make(MYSQL* c, timed_calls& calls,
                                                       const tables& t) {
  const std::string text = update_of(t, "?", "?", "?", "?", "");
  statement s{mysql_stmt_init(c)};
  if (!s || calls(mysql_stmt_prepare_start, mysql_stmt_prepare_cont, s.get(), text.data(),
                  text.size()) != 0) {
    return nullptr;
  }
  return std::unique_ptr<prepared_update>(new prepared_update(std::move(s)));
}

std::optional<std::uint64_t> prepared_update::run(const sql::replacement& r, timed_calls& calls) {
  std::int64_t version = r.version, now = *r.assumed_now;
  std::array values{bytes(r.record), bytes(r.name), number(version), number(now)};
  auto* const s = statement_.get();
  if (mysql_stmt_bind_param(s, values.data()) != 0) return {};
  if (calls(mysql_stmt_execute_start, mysql_stmt_execute_cont, s) != 0) return {};
  return mysql_stmt_affected_rows(s);
}

}  // namespace holdfast::store::mariadb
