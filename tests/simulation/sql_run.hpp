#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simulation/sql_tables.hpp"

/// How a simulated server carries out one statement under READ COMMITTED.
namespace simulation {

struct sql_result {
  std::vector<std::vector<sql_value>> rows{};
  std::uint64_t affected = 0;
  bool has_rows = false;
};

/// What a statement needs from the server beside its tables.
struct sql_surroundings {
  sql_dialect dialect = sql_dialect::postgres;
  std::function<std::int64_t()> clock{};  ///< microseconds since 1970
  /// Calls a function outside the language: pg_notify, set_config, …
  std::function<sql_value(const std::string&, std::span<const sql_value>)> call{};
};

/// Throws sql_must_wait where the statement has to wait for a row. The caller then repeats it with
/// the same snapshot (which the transaction keeps), and the statement does what the server would do
/// when it continues.
sql_result carry_out(const sql_statement& s, std::span<const sql_value> parameters,
                     sql_tables& tables, sql_transaction& by, const sql_surroundings& around);

/// Whether the statement changes a row, or locks one for a change.
bool writes(const sql_statement& s) noexcept;

}  // namespace simulation
