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
    std::uint64_t committed = 0;  ///< the number of the commit
    bool there = false;
    std::int64_t number = 0;  ///< a record's version; the meta row's floor
    std::string record{};
  };
  std::deque<state> history{{}};  ///< the committed states, the last one last
  std::optional<state> pending{};
  sql_transaction* writer = nullptr;     ///< of the pending state
  sql_transaction* exclusive = nullptr;  ///< holds the exclusive lock
  std::vector<sql_transaction*> sharers{};
  std::deque<sql_transaction*> waiting{};

  bool idle() const noexcept {
    return writer == nullptr && exclusive == nullptr && sharers.empty() && waiting.empty();
  }
};

/// The work of a connection at the server between two commits.
struct sql_transaction {
  int number = 0;  ///< of the connection
  std::vector<std::pair<std::string, sql_row*>> held{};
  std::vector<sql_row*> written{};
  std::vector<std::pair<std::string, std::string>> tells{};  ///< (channel, line)
  sql_row* waits_for = nullptr;
  std::optional<std::uint64_t> snapshot{};  ///< of the statement that waits
};

/// Thrown where a statement cannot continue before another transaction ends.
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
  std::string refused;  ///< nobody may change the row of that name
  std::uint64_t commits = 0;

  sql_tables() { meta.history.back() = {.there = true, .number = 0, .record = {}}; }

  sql_row& record(const std::string& name) { return records[name]; }

  /// Locks the row, or throws.
  void lock(sql_transaction& by, const std::string& name, sql_row& r, bool exclusively);
  /// Unlocks the row before the end, if the transaction has written nothing there.
  void unlock(sql_transaction& by, sql_row& r);
  /// Sharers come first. A transaction does not wait for itself.
  bool waits_in_a_ring(const sql_transaction& first) const;

  static void write(sql_transaction& by, sql_row& r, sql_row::state to);
  /// That transaction's view of a row; it sees another one's changes only after their commit.
  static const sql_row::state& latest(const sql_transaction& by, const sql_row& r) noexcept;
  const sql_row::state& at_snapshot(const sql_transaction& by, const sql_row& r) const noexcept;

  /// Ends the transaction. Returns the transactions that waited for its rows and may continue, in
  /// their order.
  std::vector<sql_transaction*> commit(sql_transaction& t);
  std::vector<sql_transaction*> roll_back(sql_transaction& t);

  /// A copy of all committed data, without transactions.
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
