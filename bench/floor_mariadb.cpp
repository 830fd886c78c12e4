// Only where Connector/C was found when this was built.
#ifdef HOLDFAST_BENCH_MARIADB
#include <mysql.h>

#include <chrono>
#include <random>
#include <stdexcept>
#include <thread>

#include "bench/subject.hpp"

// As floor_postgres.cpp, in this server's words: it has no `on conflict … where`, so to take the
// row is an insert whose update keeps what has not expired.
namespace bench {
namespace {

bool is_mariadb(std::string_view url) { return scheme_of(url) == "mariadb"; }

/// A blocking connection, for one thread. From mariadb://user@host:port/database.
class connection {
 public:
  explicit connection(const std::string& url) : connection_{mysql_init(nullptr)} {
    const std::string rest = url.substr(url.find("//") + 2);
    const auto at = rest.find('@'), colon = rest.find(':', at), slash = rest.find('/', at);
    const auto user = rest.substr(0, at);
    const auto host = rest.substr(at + 1, colon - at - 1);
    const auto database = rest.substr(slash + 1, rest.find('?') - slash - 1);
    const auto port = static_cast<unsigned>(std::stoi(rest.substr(colon + 1)));
    const auto open = [&](const char* name) {
      return mysql_real_connect(connection_, host.c_str(), user.c_str(), nullptr, name, port,
                                nullptr, 0) != nullptr;
    };
    if (!open(nullptr)) fail();
    run("create database if not exists `" + database + "`");
    run("use `" + database + "`");
  }
  ~connection() { mysql_close(connection_); }
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  /// How many rows it changed; an insert that became an update counts two.
  std::uint64_t run(const std::string& sql) {
    if (mysql_real_query(connection_, sql.data(), sql.size()) != 0) fail();
    return mysql_affected_rows(connection_);
  }

  /// A question whose answer is read and not looked at.
  void ask(const std::string& sql) {
    run(sql);
    mysql_free_result(mysql_store_result(connection_));
  }

 private:
  [[noreturn]] void fail() { throw std::runtime_error{mysql_error(connection_)}; }
  MYSQL* connection_;
};

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
  connection db_;
  std::string take_;
  std::string give_;
};

/// The server's own lock, as a program would use it that has no need for more.
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
  connection db_;
  std::string take_;
  std::string give_;
};

bool is_session_mode(std::string_view url) {
  return is_mariadb(url) && url.find("mode=session") != url.npos;
}

void make_table(const place& at) {
  connection c{at.url};
  c.run(
      "create table if not exists floor_lock (name bigint primary key, holder bigint not null, "
      "expires datetime(6) not null) engine = InnoDB");
  c.run("delete from floor_lock");
}

}  // namespace

const subject_kind mariadb_row_floor{
    .name = "mariadb_row",
    .counts_operations = false,
    .fits = is_mariadb,
    .across_processes = always,
    .prepare = make_table,
    .open = open_locks<row_grip>,
};

const subject_kind mariadb_user_lock_floor{
    .name = "mariadb_user_lock",
    .counts_operations = false,
    .fits = is_session_mode,
    .across_processes = always,
    .prepare = [](const place&) {},
    .open = open_locks<user_lock_grip>,
};

}  // namespace bench

#endif
