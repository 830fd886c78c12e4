#include <mysql.h>

#include <algorithm>
#include <array>
#include <holdfast/result.hpp>
#include <holdfast/store/transaction_locks.hpp>
#include <memory>
#include <string>

#include "store/mariadb/errors.hpp"

namespace holdfast {

namespace {

constexpr unsigned waited_too_long = 1205;
/// No such database, column, table or function, an ambiguous column, invalid SQL, a sum or several
/// rows in the wrong place, a number out of range: the table and the condition belong to the
/// calling program, and an error in them is not holdfast's.
constexpr std::array of_the_program{1049U, 1052U, 1054U, 1064U, 1111U, 1146U, 1242U, 1305U, 1690U};

[[noreturn]] void fail(std::string_view table, failure f) {
  f.operation = "row_lock";
  f.name = table;
  f.store = "the transaction";
  throw_failure(std::move(f));
}

bool in_transaction(const MYSQL* c) noexcept {
  return (c->server_status & SERVER_STATUS_IN_TRANS) != 0;
}

// The answer to a failed statement does not show whether the transaction still exists.
bool rolled_back(MYSQL* c) noexcept { return mysql_query(c, "do 0") == 0 && !in_transaction(c); }

// The server returns 1205 both to a session that will not wait, and to one that waited too long.
// Whether it has rolled back the whole transaction depends on the reason and on its settings.
failure lock_failure(MYSQL* c, when_locked how) {
  const unsigned number = mysql_errno(c);
  failure f = store::mariadb::server_says(number, mysql_error(c));
  if (std::find(of_the_program.begin(), of_the_program.end(), number) != of_the_program.end()) {
    f = {errc::invalid_argument, "the server answered '" + std::string(mysql_error(c)) + "' (" +
                                     std::to_string(number) +
                                     "): check the table and the condition"};
  }
  if (number == waited_too_long) {
    f.code = how == when_locked::refuse ? errc::busy : errc::timed_out;
  }
  if (rolled_back(c)) {
    f.code = errc::deadlock;
    f.what += ". The server has rolled the transaction back: begin it anew";
  }
  return f;
}

const char* clause(when_locked how) {
  switch (how) {
    case when_locked::wait:
      return " for update";
    case when_locked::refuse:
      return " for update nowait";
    case when_locked::skip:
      return " for update skip locked";
  }
  return "";
}

}  // namespace

std::size_t row_lock(st_mysql* c, std::string_view table, std::string_view which, when_locked how) {
  if (!in_transaction(c)) {
    fail(table, {errc::invalid_argument,
                 "no transaction is open on this connection: start transaction first"});
  }
  std::string sql = "select 1 from ";
  sql.append(table).append(" where ").append(which).append(clause(how));
  if (mysql_real_query(c, sql.data(), sql.size()) != 0) fail(table, lock_failure(c, how));
  const std::unique_ptr<MYSQL_RES, void (*)(MYSQL_RES*)> rows(mysql_store_result(c),
                                                              &mysql_free_result);
  if (!rows) fail(table, lock_failure(c, how));
  return mysql_num_rows(rows.get());
}

}  // namespace holdfast
