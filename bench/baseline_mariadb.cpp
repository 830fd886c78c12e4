// Only if Connector/C was found at build time.
#ifdef HOLDFAST_BENCH_MARIADB
#include <chrono>
#include <random>
#include <thread>

#include "bench/mariadb_connection.hpp"
#include "bench/subject.hpp"

// As baseline_postgres.cpp, in this server's dialect: it has no `on conflict … where`, so the row
// is taken by an insert whose update keeps a value that has not expired.
namespace bench {
namespace {

bool is_mariadb(std::string_view url) { return scheme_of(url) == "mariadb"; }

class row_grip final : public handle {
 public:
  row_grip(const std::string& url, unsigned lock) : db_{url} {
    const std::string key = std::to_string(lock);
    const std::string holder = std::to_string(std::random_device{}());
    take_ = "insert into floor_lock values (" + key + ", " + holder +
            ", now(6) + interval 30 second) on duplicate key update holder = if(expires < now(6), "
            "values(holder), holder), expires = if(holder = values(holder), values(expires), "
            "expires)";
    give_ = "delete from floor_lock where name = " + key + " and holder = " + holder;
  }
  void lock() override {
    while (db_.run(take_) == 0) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  void unlock() override { db_.run(give_); }

 private:
  mariadb_connection db_;
  std::string take_;
  std::string give_;
};

/// The server's own lock, for a program that needs no more.
class user_lock_grip final : public handle {
 public:
  user_lock_grip(const std::string& url, unsigned lock) : db_{url} {
    const std::string key = "'floor_" + std::to_string(lock) + "'";
    take_ = "select get_lock(" + key + ", 3600)";
    give_ = "select release_lock(" + key + ")";
  }
  void lock() override { db_.ask(take_); }
  void unlock() override { db_.ask(give_); }

 private:
  mariadb_connection db_;
  std::string take_;
  std::string give_;
};

bool is_session_mode(std::string_view url) {
  return is_mariadb(url) && url.find("mode=session") != url.npos;
}

void make_table(const place& at) {
  mariadb_connection c{at.url};
  c.run(
      "create table if not exists floor_lock (name bigint primary key, holder bigint not null, "
      "expires datetime(6) not null) engine = InnoDB");
  c.run("delete from floor_lock");
}

}  // namespace

const subject_kind mariadb_row_baseline{
    .name = "mariadb_row",
    .counts_operations = false,
    .fits = is_mariadb,
    .across_processes = always,
    .prepare = make_table,
    .open = open_locks<row_grip>,
};

const subject_kind mariadb_user_lock_baseline{
    .name = "mariadb_user_lock",
    .counts_operations = false,
    .fits = is_session_mode,
    .across_processes = always,
    .prepare = [](const place&) {},
    .open = open_locks<user_lock_grip>,
};

}  // namespace bench

#endif
