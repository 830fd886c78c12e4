// Only if libpq was found at build time.
#ifdef HOLDFAST_BENCH_POSTGRES
#include <libpq-fe.h>
#include <poll.h>

#include <chrono>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>

#include "bench/subject.hpp"

// The lock that people write by hand: a unique row with a holder and an expiry, one statement to
// take it if it is free or has expired, one to release it; and a loop that retries every
// millisecond, or LISTEN, as the least that a hand-over can cost. The statements are prepared, as a
// careful author would.
namespace bench {
namespace {

bool is_postgres(std::string_view url) { return scheme_of(url) == "postgres"; }

using answer = std::unique_ptr<PGresult, decltype([](PGresult* r) { PQclear(r); })>;

/// A blocking connection, for one thread.
class connection {
 public:
  explicit connection(const std::string& url)
      : connection_{PQconnectdb(url.substr(0, url.find('?')).c_str())} {
    PQsetNoticeReceiver(connection_, [](void*, const PGresult*) {}, nullptr);
  }
  ~connection() { PQfinish(connection_); }
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  void run(const char* sql) { checked(answer{PQexec(connection_, sql)}); }
  void prepare(const char* name, const char* sql) {
    checked(answer{PQprepare(connection_, name, sql, 0, nullptr)});
  }
  /// Whether it changed a row.
  bool change(const char* name, const std::string& key, const std::string& holder) {
    const char* values[] = {key.c_str(), holder.c_str()};
    const answer r{PQexecPrepared(connection_, name, 2, values, nullptr, nullptr, 0)};
    return std::string_view{PQcmdTuples(checked(r))} == "1";
  }

  /// Returns when something was published since the last time.
  void await_notification() {
    for (bool told = false; !told;) {
      while (PGnotify* const one = PQnotifies(connection_)) PQfreemem(one), told = true;
      if (told) break;
      pollfd socket{PQsocket(connection_), POLLIN, 0};
      poll(&socket, 1, -1);
      if (PQconsumeInput(connection_) == 0) throw std::runtime_error{PQerrorMessage(connection_)};
    }
  }

  void ask(const char* name, const std::string& key) {
    const char* values[] = {key.c_str()};
    checked(answer{PQexecPrepared(connection_, name, 1, values, nullptr, nullptr, 0)});
  }

 private:
  PGresult* checked(const answer& r) {
    const auto how = PQresultStatus(r.get());
    if (how != PGRES_COMMAND_OK && how != PGRES_TUPLES_OK)
      throw std::runtime_error{PQerrorMessage(connection_)};
    return r.get();
  }
  PGconn* connection_;
};

void prepare_take(connection& db) {
  db.prepare("take",
             "insert into floor_lock as l values ($1, $2, now() + interval '30 s') on conflict "
             "(name) do update set holder = excluded.holder, expires = excluded.expires where "
             "l.expires < now() returning true");
}

std::string random_name() { return std::to_string(std::random_device{}()); }

class row_grip final : public handle {
 public:
  row_grip(const std::string& url, unsigned lock)
      : db_{url}, key_{std::to_string(lock)}, holder_{random_name()} {
    prepare_take(db_);
    db_.prepare("give", "delete from floor_lock where name = $1 and holder = $2");
  }
  void lock() override {
    while (!db_.change("take", key_, holder_))
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  void unlock() override { db_.change("give", key_, holder_); }

 private:
  connection db_;
  std::string key_;
  std::string holder_;
};

/// The same, but the release notifies the others in the same statement, and they listen.
class listening_grip final : public handle {
 public:
  listening_grip(const std::string& url, unsigned lock)
      : db_{url}, key_{"listen_" + std::to_string(lock)}, holder_{random_name()} {
    prepare_take(db_);
    db_.prepare("give",
                "with gone as (delete from floor_lock where name = $1 and holder = $2 returning "
                "name) select pg_notify('floor_' || name, '') from gone");
    db_.run(("listen floor_" + key_).c_str());
  }
  void lock() override {
    while (!db_.change("take", key_, holder_)) db_.await_notification();
  }
  void unlock() override { db_.change("give", key_, holder_); }

 private:
  connection db_;
  std::string key_;
  std::string holder_;
};

/// The server's own lock, for a program that needs no more.
class advisory_grip final : public handle {
 public:
  advisory_grip(const std::string& url, unsigned lock) : db_{url}, key_{std::to_string(lock)} {
    db_.prepare("take", "select pg_advisory_lock($1::bigint)");
    db_.prepare("give", "select pg_advisory_unlock($1::bigint)");
  }
  void lock() override { db_.ask("take", key_); }
  void unlock() override { db_.ask("give", key_); }

 private:
  connection db_;
  std::string key_;
};

bool is_session_mode(std::string_view url) {
  return is_postgres(url) && url.find("mode=session") != url.npos;
}

void make_table(const place& at) {
  connection{at.url}.run(
      "create table if not exists floor_lock (name text primary key, holder text not null, "
      "expires timestamptz not null); truncate floor_lock");
}

}  // namespace

const subject_kind postgres_row_baseline{
    .name = "postgres_row",
    .counts_operations = false,
    .fits = is_postgres,
    .across_processes = always,
    .prepare = make_table,
    .open = open_locks<row_grip>,
};

const subject_kind listen_notify_baseline{
    .name = "listen_notify",
    .counts_operations = false,
    .fits = is_postgres,
    .across_processes = always,
    .prepare = nothing,
    .open = open_locks<listening_grip>,
};

const subject_kind postgres_advisory_baseline{
    .name = "postgres_advisory",
    .counts_operations = false,
    .fits = is_session_mode,
    .across_processes = always,
    .prepare = nothing,
    .open = open_locks<advisory_grip>,
};

}  // namespace bench

#endif
