#include "bench/server_statements.hpp"

#include "bench/subject.hpp"

#ifdef HOLDFAST_BENCH_POSTGRES
#include <libpq-fe.h>
#endif
#ifdef HOLDFAST_BENCH_MARIADB
#include "bench/mariadb_connection.hpp"
#endif

#include <memory>
#include <stdexcept>

namespace bench {
namespace {

#ifdef HOLDFAST_BENCH_POSTGRES
// A backend's work is counted a second later, and ten seconds later if the backend has become idle.
std::int64_t postgres_transactions(const std::string& url) {
  const std::unique_ptr<PGconn, decltype([](PGconn* c) { PQfinish(c); })> db{
      PQconnectdb(url.substr(0, url.find('?')).c_str())};
  const std::unique_ptr<PGresult, decltype([](PGresult* r) { PQclear(r); })> said{
      PQexec(db.get(),
             "select xact_commit + xact_rollback from pg_stat_database where datname = "
             "current_database()")};
  if (PQntuples(said.get()) != 1) throw std::runtime_error{PQerrorMessage(db.get())};
  return std::stoll(PQgetvalue(said.get(), 0, 0));
}
#endif

}  // namespace

std::int64_t server_statements([[maybe_unused]] const std::string& url) {
#ifdef HOLDFAST_BENCH_POSTGRES
  if (scheme_of(url) == "postgres") return postgres_transactions(url);
#endif
#ifdef HOLDFAST_BENCH_MARIADB
  if (scheme_of(url) == "mariadb") {
    return std::stoll(mariadb_connection{url}.value("show global status like 'Questions'", 1));
  }
#endif
  return 0;
}

}  // namespace bench
