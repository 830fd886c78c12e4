// Locks in the transaction you already have, over your own libpq connection: they end with it.
// Run it with a connection string: postgres_transaction "host=/run/postgresql dbname=shop"
#include <libpq-fe.h>

#include <holdfast/guard.hpp>
#include <holdfast/store/transaction_locks.hpp>
#include <iostream>
#include <memory>
#include <string>

namespace {

void run(PGconn* c, const std::string& sql) { PQclear(PQexec(c, sql.c_str())); }

// #region transaction
/// Takes up to ten jobs that nobody else works on; no two workers get the same.
void work_on_some_jobs(PGconn* c) {
  run(c, "begin");
  try {
    holdfast::row_lock(c, "jobs", "state = 'new' order by id limit 10",
                       holdfast::when_locked::skip);
    holdfast::transaction_lock(c, "report");  // a name that is no row; waits for lock_timeout
    run(c, "update jobs set state = 'done' where …");
    run(c, "commit");
  } catch (const holdfast::error& e) {
    run(c, "rollback");
    if (e.reason() != holdfast::errc::deadlock && e.reason() != holdfast::errc::timed_out) throw;
  }
}
// #endregion

}  // namespace

int main(int argc, char** argv) {
  // #region guard
  const std::uint64_t fence = 4711;  // the fence of the lease that writes
  const std::string sql =
      holdfast::guard::fenced_update("stock", "left_over = left_over - 1", "id = 7", fence);
  // update stock set left_over = left_over - 1, fence = 4711 where (id = 7) and fence <= 4711
  // #endregion
  std::cout << sql << '\n';
  if (argc < 2) return 0;  // no server to work on
  const std::unique_ptr<PGconn, void (*)(PGconn*)> c(PQconnectdb(argv[1]), &PQfinish);
  work_on_some_jobs(c.get());
  return 0;
}
