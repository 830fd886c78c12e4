#include <sqlite3.h>

#include <array>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "bench/subject.hpp"

namespace bench {
namespace {

constexpr int busy_timeout_ms = 600'000;

/// One connection, for one thread. Set up as holdfast's own store is: WAL, synchronous = NORMAL.
class connection {
 public:
  explicit connection(const std::filesystem::path& file) {
    if (sqlite3_open(file.c_str(), &db_) != SQLITE_OK) fail(file.c_str());
    sqlite3_busy_timeout(db_, busy_timeout_ms);
    run("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
  }
  ~connection() {
    for (sqlite3_stmt* s : statements_) sqlite3_finalize(s);
    sqlite3_close(db_);
  }
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  void run(const char* sql) {
    if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail(sql);
  }

  void begin() { step(begin_it, "BEGIN IMMEDIATE"); }
  void commit() { step(commit_it, "COMMIT"); }
  /// Whether the row had the expected value, and has the wanted one now.
  bool change(unsigned lock, std::int64_t expected, std::int64_t wanted) {
    sqlite3_stmt* const s =
        ready(change_it, "UPDATE lock SET holder = ?3 WHERE id = ?1 AND holder = ?2");
    sqlite3_bind_int64(s, 1, lock);
    sqlite3_bind_int64(s, 2, expected);
    sqlite3_bind_int64(s, 3, wanted);
    step(s);
    return sqlite3_changes(db_) == 1;
  }
  /// Another value than before: SQLite writes nothing for an unchanged row.
  void touch(unsigned lock) {
    sqlite3_stmt* const s = ready(touch_it, "UPDATE lock SET holder = holder + 1 WHERE id = ?1");
    sqlite3_bind_int64(s, 1, lock);
    step(s);
  }

 private:
  enum which { begin_it, commit_it, change_it, touch_it };

  sqlite3_stmt* ready(which w, const char* sql) {
    auto& s = statements_[w];
    if (!s && sqlite3_prepare_v3(db_, sql, -1, SQLITE_PREPARE_PERSISTENT, &s, nullptr) != SQLITE_OK)
      fail(sql);
    return s;
  }
  void step(which w, const char* sql) { step(ready(w, sql)); }
  void step(sqlite3_stmt* s) {
    const int code = sqlite3_step(s);
    sqlite3_reset(s);
    if (code != SQLITE_DONE) fail(sqlite3_sql(s));
  }
  [[noreturn]] void fail(const char* doing) {
    throw std::runtime_error{std::string{"SQLite: "} + doing + ": " + sqlite3_errmsg(db_)};
  }

  sqlite3* db_ = nullptr;
  std::array<sqlite3_stmt*, 4> statements_{};
};

void make_table(const std::filesystem::path& file) {
  connection c{file};
  c.run("CREATE TABLE IF NOT EXISTS lock(id INTEGER PRIMARY KEY, holder INTEGER NOT NULL)");
  for (unsigned i = 0; i < max_locks; ++i) {
    c.run(("INSERT OR REPLACE INTO lock VALUES(" + std::to_string(i) + ", 0)").c_str());
  }
}

// ---- a lock row: one transaction takes it, another releases it

std::filesystem::path row_file(const place& at) { return at.folder / "lock-rows.db"; }

class row_grip final : public handle {
 public:
  row_grip(const std::filesystem::path& file, unsigned lock) : db_{file}, lock_{lock} {}

  void lock() override {
    for (std::size_t tries = 0; !taken(); ++tries) wait(tries);
  }
  void unlock() override {
    db_.begin();
    db_.change(lock_, me(), 0);
    db_.commit();
  }

 private:
  std::int64_t me() const {
    return static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(this));
  }

  bool taken() {
    db_.begin();
    const bool mine = db_.change(lock_, 0, me());
    db_.commit();
    return mine;
  }

  /// Nothing wakes a waiter for a row: it polls, at the intervals of sqlite3_busy_timeout().
  static void wait(std::size_t tries) {
    constexpr std::array<int, 12> steps{1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100};
    std::this_thread::sleep_for(
        std::chrono::milliseconds{steps[std::min(tries, steps.size() - 1)]});
  }

  connection db_;
  unsigned lock_;
};

class row_locks final : public subject {
 public:
  explicit row_locks(const place& at) : file_{row_file(at)} {}
  std::unique_ptr<handle> grip(unsigned lock) override {
    return std::make_unique<row_grip>(file_, lock);
  }

 private:
  std::filesystem::path file_;
};

// ---- the transaction is the lock: a database for each, because SQLite locks whole files

std::filesystem::path transaction_file(const place& at, unsigned lock) {
  return at.folder / ("lock-" + std::to_string(lock) + ".db");
}

class transaction_grip final : public handle {
 public:
  transaction_grip(const std::filesystem::path& file, unsigned lock) : db_{file}, lock_{lock} {}
  void lock() override {
    db_.begin();
    db_.touch(lock_);
  }
  void unlock() override { db_.commit(); }

 private:
  connection db_;
  unsigned lock_;
};

class transaction_locks final : public subject {
 public:
  explicit transaction_locks(const place& at) : at_{at} {}
  std::unique_ptr<handle> grip(unsigned lock) override {
    return std::make_unique<transaction_grip>(transaction_file(at_, lock), lock);
  }

 private:
  place at_;
};

void prepare_rows(const place& at) { make_table(row_file(at)); }

std::unique_ptr<subject> open_rows(const place& at) { return std::make_unique<row_locks>(at); }

void prepare_transactions(const place& at) {
  for (unsigned i = 0; i < max_locks; ++i) make_table(transaction_file(at, i));
}

std::unique_ptr<subject> open_transactions(const place& at) {
  return std::make_unique<transaction_locks>(at);
}

}  // namespace

const subject_kind sqlite_row_baseline{
    .name = "sqlite",
    .counts_operations = false,
    .fits = on_one_host,
    .across_processes = always,
    .prepare = prepare_rows,
    .open = open_rows,
};

const subject_kind sqlite_transaction_baseline{
    .name = "sqlite_begin_immediate",
    .counts_operations = false,
    .fits = on_one_host,
    .across_processes = always,
    .prepare = prepare_transactions,
    .open = open_transactions,
};

}  // namespace bench
