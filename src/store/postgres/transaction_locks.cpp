#include <libpq-fe.h>

#include <holdfast/result.hpp>
#include <holdfast/store/transaction_locks.hpp>
#include <memory>
#include <string>

#include "store/postgres/advisory.hpp"
#include "store/postgres/errors.hpp"

namespace holdfast {

namespace {

using store::postgres::sqlstate_of;

struct attempt {
  std::string_view operation;
  std::string_view name;
  when_locked how = when_locked::wait;
};

[[noreturn]] void fail(const attempt& tried, failure f) {
  f.operation = tried.operation;
  f.name = tried.name;
  f.store = "the transaction";
  throw_failure(std::move(f));
}

void require_transaction(const PGconn* c, const attempt& tried) {
  const auto status = PQtransactionStatus(c);
  if (status == PQTRANS_INTRANS) return;
  const bool failed = status == PQTRANS_INERROR;
  fail(tried, {status == PQTRANS_UNKNOWN ? errc::unavailable : errc::invalid_argument,
               failed ? "an earlier statement of the transaction failed: roll it back"
                      : "no transaction is open on this connection: begin one first"});
}

// The table and the condition belong to the calling program: an error in them is not holdfast's.
// (0A000: rows of a group cannot be locked, for example.)
bool is_of_the_program(std::string_view state) noexcept {
  return state.starts_with("21") || state.starts_with("22") || state == "0A000" ||
         (state.starts_with("42") && state != "42501");
}

failure as_the_program_s(const PGresult* answer) {
  const char* const said = PQresultErrorField(answer, PG_DIAG_MESSAGE_PRIMARY);
  return {errc::invalid_argument, "the server answered '" + std::string(said ? said : "") + "' (" +
                                      std::string(sqlstate_of(answer)) +
                                      "): check the table and the condition"};
}

// The server returns 55P03 both to a session that will not wait, and to one that waited too long.
failure as_lock_failure(const PGresult* answer, when_locked how) {
  const auto state = sqlstate_of(answer);
  if (is_of_the_program(state)) return as_the_program_s(answer);
  failure f = store::postgres::server_says(answer);
  if (state == "40P01") f.code = errc::deadlock;
  if (state == "55P03") f.code = how == when_locked::refuse ? errc::busy : errc::timed_out;
  return f;
}

store::postgres::answer ask(PGconn* c, const attempt& tried, const std::string& sql,
                            const char* parameter = nullptr) {
  require_transaction(c, tried);
  store::postgres::answer a(PQexecParams(c, sql.c_str(), parameter != nullptr ? 1 : 0, nullptr,
                                         &parameter, nullptr, nullptr, 0));
  if (a.get() == nullptr) fail(tried, store::postgres::connection_says(c, "asking"));
  if (PQresultStatus(a.get()) != PGRES_TUPLES_OK) fail(tried, as_lock_failure(a.get(), tried.how));
  return a;
}

std::string calling(const char* function) {
  return std::string("select pg_catalog.") + function + "(" + store::postgres::advisory_key + ")";
}

std::string key_of(std::string_view schema, std::string_view name) {
  return std::string(schema).append(".").append(name);
}

}  // namespace

std::size_t row_lock(pg_conn* c, std::string_view table, std::string_view which, when_locked how) {
  std::string sql = "select 1 from ";
  sql.append(table).append(" where ").append(which).append(" for update");
  if (how == when_locked::refuse) sql += " nowait";
  if (how == when_locked::skip) sql += " skip locked";
  return static_cast<std::size_t>(ask(c, {"row_lock", table, how}, sql).rows());
}

void transaction_lock(pg_conn* c, std::string_view name, std::string_view schema) {
  (void)ask(c, {"transaction_lock", name}, calling("pg_advisory_xact_lock"),
            key_of(schema, name).c_str());
}

bool try_transaction_lock(pg_conn* c, std::string_view name, std::string_view schema) {
  return ask(c, {"try_transaction_lock", name}, calling("pg_try_advisory_xact_lock"),
             key_of(schema, name).c_str())
             .text(0, 0) == "t";
}

}  // namespace holdfast
