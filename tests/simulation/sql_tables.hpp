#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulation/sql_text.hpp"

/// The two tables of a simulated SQL server: rows with versions, locks, and transactions.
namespace simulation {

enum class sql_dialect { postgres, mariadb };

struct sql_transaction;

struct sql_row {
  struct state {
    std::uint64_t committed = 0;  ///< by which commit
    bool there = false;
    std::int64_t number = 0;  ///< a record's version; the floor
    std::string record{};
  };
  std::deque<state> history{{}};  ///< as it was committed, the last one last
  std::optional<state> pending{};
  sql_transaction* writer = nullptr;     ///< of what is pending
  sql_transaction* exclusive = nullptr;  ///< which may write
  std::vector<sql_transaction*> sharers{};
  std::deque<sql_transaction*> waiting{};

  bool idle() const noexcept {
    return writer == nullptr && exclusive == nullptr && sharers.empty() && waiting.empty();
  }
};

/// Whatever a connection does at the server between two commits.
struct sql_transaction {
  int number = 0;  ///< of the connection
  std::vector<std::pair<std::string, sql_row*>> held{};
  std::vector<sql_row*> written{};
  std::vector<std::pair<std::string, std::string>> tells{};  ///< channels and lines, at the commit
  sql_row* waits_for = nullptr;
  std::optional<std::uint64_t> snapshot{};  ///< of the statement that waits
};

/// Thrown where a statement cannot go on before another transaction ends.
struct sql_must_wait {
  sql_row* row;
};

/// Thrown where a statement fails.
struct sql_refused {
  const char* postgres;
  const char* mariadb;
  const char* said;
};

class sql_tables {
 public:
  using rows = std::map<std::string, sql_row, std::less<>>;

  rows records;
  sql_row meta;
  std::uint64_t commits = 0;

  sql_tables() { meta.history.back() = {.there = true, .number = 0, .record = {}}; }

  sql_row& record(const std::string& name) { return records[name]; }

  /// Takes it, or throws.
  void lock(sql_transaction& by, const std::string& name, sql_row& r, bool exclusively);
  /// Gives it back before the end, if the transaction has written nothing there.
  void unlock(sql_transaction& by, sql_row& r);
  /// Sharers go first. A transaction does not wait for itself.
  bool waits_in_a_ring(const sql_transaction& first) const;

  static void write(sql_transaction& by, sql_row& r, sql_row::state to);
  /// What that transaction sees of a row; another one's changes only when they are committed.
  static const sql_row::state& latest(const sql_transaction& by, const sql_row& r) noexcept;
  const sql_row::state& at_snapshot(const sql_transaction& by, const sql_row& r) const noexcept;

  /// Ends it. Returns the transactions that waited for its rows and may go on, in their order.
  std::vector<sql_transaction*> commit(sql_transaction& t);
  std::vector<sql_transaction*> roll_back(sql_transaction& t);

  /// Everything as at that moment, and nobody has begun anything.
  struct copy {
    std::map<std::string, sql_row::state> records;
    sql_row::state meta{.there = true};
  };
  copy now() const;
  void restore(const copy& from);

 private:
  std::vector<sql_transaction*> release(sql_transaction& t);
};

}  // namespace simulation
