#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The SQL that the drivers of PostgreSQL and MariaDB send, parsed from their own texts, so that a
/// changed text changes what the simulated server does. Covers only what the drivers send.
namespace simulation {

/// NULL, a whole number, or text.
struct sql_value {
  enum class kind { null, number, text };
  kind is = kind::null;
  std::int64_t number = 0;
  std::string text{};

  static sql_value of(std::int64_t n) { return {kind::number, n, {}}; }
  static sql_value of(bool yes) { return of(std::int64_t{yes}); }
  static sql_value of(std::string t) { return {kind::text, 0, std::move(t)}; }
  bool null() const noexcept { return is == kind::null; }
  /// The value as a number, 0 if it is none.
  std::int64_t as_number() const noexcept;
  std::string as_text() const { return is == kind::number ? std::to_string(number) : text; }
  bool is_true() const noexcept { return is == kind::number && number != 0; }
};

/// Columns of both tables: no two have the same name.
enum class sql_column { name, version, record, format, fence_floor, id, whole, fence };

struct sql_statement;

struct sql_expression {
  enum class op {
    literal,
    parameter,
    column,
    call,
    when,  ///< condition, value
    to_number,
    to_text,
    element,  ///< of a JSON array
    plus,
    minus,
    over,
    equal,
    less,
    less_or_equal,
    greater,
    between,
    in,
    matches,
    is_null,
    both,
    either,
    negation,
    subquery,
  };
  op is = op::literal;
  sql_value value{};   ///< a literal's; the number of a parameter, from 0
  std::string word{};  ///< of a call
  sql_column from = sql_column::name;
  std::vector<sql_expression> of{};
  std::shared_ptr<const sql_statement> asks{};
};

enum class sql_lock { none, share, exclusive };

struct sql_statement {
  enum class verb { select, insert, update, remove, begin, commit, rollback, set, listen, look };
  verb what = verb::select;
  std::string text{};  ///< its beginning, for a trace; a channel
  bool meta = false;
  bool records = false;
  bool gone = false;       ///< the rows that the statement before has removed
  bool left_join = false;  ///< `where` says which record belongs to the meta row
  sql_lock locks_meta = sql_lock::none;
  sql_lock locks_records = sql_lock::none;
  bool skips_locked = false;  ///< of a remove: rows that others have locked stay
  bool has_where = false;
  sql_expression where{};
  std::vector<sql_expression> outputs{};
  std::optional<sql_expression> limit{};  ///< of a `set`: the time-out for locks
  std::vector<std::pair<sql_column, sql_expression>> assignments{};
  std::vector<sql_expression> returning{};
  bool conflict_locks = false;                    ///< locks the row that exists already
  std::shared_ptr<const sql_statement> source{};  ///< of an insert; or of `with …`
};

using sql_statements = std::vector<std::shared_ptr<const sql_statement>>;

/// One statement or several, separated by semicolons. Parameters are $1, $2, … or ?, ?, … Throws
/// std::logic_error for a text that no driver sends.
const sql_statements& parse_sql(const std::string& text);

/// Moves the values that are written in a text to `values`, and leaves ? in their place.
std::string take_values(std::string_view text, std::vector<sql_value>& values);

}  // namespace simulation
