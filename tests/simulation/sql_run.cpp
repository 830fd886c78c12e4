#include "simulation/sql_run.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <regex>
#include <stdexcept>

namespace simulation {

namespace {

using op = sql_expression::op;
using verb = sql_statement::verb;

/// The source of the column values.
struct sql_view {
  const std::string* name = nullptr;
  const sql_row::state* record = nullptr;
  const sql_row::state* meta = nullptr;
  const sql_value* fence = nullptr;
};

/// The text of one element of a JSON array, without its quotes; nothing if there is none.
std::optional<std::string> element_of(std::string_view array, std::size_t which) {
  if (!array.starts_with('[')) return std::nullopt;
  std::size_t index = 0, depth = 0, first = 1;
  bool quoted = false;
  for (std::size_t i = 1; i < array.size(); ++i) {
    const char c = array[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '[' || c == '{')) {
      ++depth;
    } else if (!quoted && depth > 0 && (c == ']' || c == '}')) {
      --depth;
    } else if (!quoted && depth == 0 && (c == ',' || c == ']')) {
      auto part = array.substr(first, i - first);
      first = i + 1;
      if (index++ != which) continue;
      if (part.starts_with('"')) part = part.substr(1, part.size() - 2);
      return part.empty() ? std::nullopt : std::optional(std::string(part));
    }
  }
  return std::nullopt;
}

bool matches(const std::string& text, const std::string& pattern) {
  static std::map<std::string, std::regex, std::less<>> known;
  auto at = known.find(pattern);
  if (at == known.end()) at = known.emplace(pattern, std::regex(pattern)).first;
  return std::regex_search(text, at->second);
}

int compare(const sql_value& a, const sql_value& b) {
  if (a.is == sql_value::kind::text && b.is == sql_value::kind::text) return a.text.compare(b.text);
  const auto left = a.as_number(), right = b.as_number();
  return left < right ? -1 : left > right ? 1 : 0;
}

// Parses an array such as {"one","two"}, with backslashes.
std::vector<std::string> items_of(std::string_view array) {
  std::vector<std::string> all;
  bool inside = false;
  for (std::size_t i = 0; i < array.size(); ++i) {
    if (array[i] == '"') {
      inside = !inside;
      if (inside) all.emplace_back();
    } else if (inside) {
      if (array[i] == '\\') ++i;
      all.back() += array[i];
    }
  }
  return all;
}

class runner {
 public:
  runner(std::span<const sql_value> parameters, sql_tables& tables, sql_transaction& by,
         const sql_surroundings& around)
      : parameters_(parameters), tables_(tables), by_(by), around_(around) {}

  sql_result run(const sql_statement& s) {
    switch (s.what) {
      case verb::insert:
        return insert(s);
      case verb::update:
      case verb::remove:
        return change(s);
      default:
        return select(s);
    }
  }

 private:
  // ---- expressions

  sql_value value(const sql_expression& e, const sql_view& v) {
    switch (e.is) {
      case op::literal:
        return e.value;
      case op::parameter:
        return parameters_[static_cast<std::size_t>(e.value.number)];
      case op::column:
        return column(e.from, v);
      case op::call:
        return call(e, v);
      case op::when:
        return value(e.of[0], v).is_true() ? value(e.of[1], v) : sql_value{};
      case op::subquery:
        return scalar(*e.asks);
      case op::is_null:
        return sql_value::of(value(e.of[0], v).null());
      case op::both:
        return sql_value::of(value(e.of[0], v).is_true() && value(e.of[1], v).is_true());
      case op::either:
        return sql_value::of(value(e.of[0], v).is_true() || value(e.of[1], v).is_true());
      default:
        return of_what_is_there(e, v);
    }
  }

  // NULL makes NULL.
  sql_value of_what_is_there(const sql_expression& e, const sql_view& v) {
    const sql_value first = value(e.of[0], v);
    if (first.null()) return {};
    if (e.is == op::negation) return sql_value::of(!first.is_true());
    if (e.is == op::to_number) return sql_value::of(first.as_number());
    if (e.is == op::to_text) return sql_value::of(first.as_text());
    if (e.is == op::in) return sql_value::of(is_one_of(first, e, v));
    const sql_value second = value(e.of[1], v);
    if (second.null()) return {};
    switch (e.is) {
      case op::plus: {
        std::int64_t sum = 0;
        if (__builtin_add_overflow(first.as_number(), second.as_number(), &sum)) {
          throw sql_refused{"22003", "1690", "out of range"};
        }
        return sql_value::of(sum);
      }
      case op::over:
        if (second.as_number() == 0) throw sql_refused{"22012", "1365", "division by zero"};
        return sql_value::of(first.as_number() / second.as_number());
      case op::minus:
        return sql_value::of(first.as_number() - second.as_number());
      case op::equal:
        return sql_value::of(compare(first, second) == 0);
      case op::less:
        return sql_value::of(compare(first, second) < 0);
      case op::less_or_equal:
        return sql_value::of(compare(first, second) <= 0);
      case op::greater:
        return sql_value::of(compare(first, second) > 0);
      case op::between:
        return sql_value::of(compare(first, second) >= 0 && compare(first, value(e.of[2], v)) <= 0);
      case op::matches:
        return sql_value::of(matches(first.as_text(), second.as_text()));
      case op::element:
        return element(first.as_text(), second);
      default:
        throw std::logic_error("an expression that the simulated server does not know");
    }
  }

  bool is_one_of(const sql_value& what, const sql_expression& e, const sql_view& v) {
    for (std::size_t i = 1; i < e.of.size(); ++i) {
      const auto one = value(e.of[i], v);
      if (e.word == "array") {
        const auto all = items_of(one.text);
        return std::find(all.begin(), all.end(), what.text) != all.end();
      }
      if (compare(what, one) == 0) return true;
    }
    return false;
  }

  static sql_value element(const std::string& text, const sql_value& which) {
    if (which.is == sql_value::kind::text) return sql_value::of(text);  // the id of the meta row
    auto found = element_of(text, static_cast<std::size_t>(which.number));
    return found ? sql_value::of(std::move(*found)) : sql_value{};
  }

  static sql_value column(sql_column c, const sql_view& v) {
    switch (c) {
      case sql_column::name:
        return v.record == nullptr ? sql_value{} : sql_value::of(*v.name);
      case sql_column::version:
        return v.record == nullptr ? sql_value{} : sql_value::of(v.record->number);
      case sql_column::record:
        return v.record == nullptr ? sql_value{} : sql_value::of(v.record->record);
      case sql_column::format:
        return sql_value::of(std::int64_t{1});
      case sql_column::fence_floor:
        return sql_value::of(v.meta->number);
      case sql_column::fence:
        return *v.fence;
      default:
        return sql_value::of(std::string("simulated"));
    }
  }

  sql_value call(const sql_expression& e, const sql_view& v) {
    if (e.word == "clock") return sql_value::of(around_.clock());
    std::vector<sql_value> of;
    for (const auto& a : e.of) of.push_back(value(a, v));
    if (e.word == "octet_length") {
      return of[0].null() ? sql_value{}
                          : sql_value::of(static_cast<std::int64_t>(of[0].as_text().size()));
    }
    if (e.word == "abs")
      return of[0].null() ? sql_value{} : sql_value::of(std::abs(of[0].as_number()));
    if (e.word == "greatest") {
      const auto null = std::any_of(of.begin(), of.end(), [](const auto& o) { return o.null(); });
      if (null && around_.dialect == sql_dialect::mariadb) return {};
      std::erase_if(of, [](const auto& o) { return o.null(); });
      return *std::max_element(of.begin(), of.end(),
                               [](const auto& a, const auto& b) { return compare(a, b) < 0; });
    }
    if (e.word == "coalesce") {
      const auto at = std::find_if(of.begin(), of.end(), [](const auto& o) { return !o.null(); });
      return at == of.end() ? sql_value{} : *at;
    }
    if (e.word == "json_value") {
      auto found = element_of(of[0].text, std::stoul(of[1].text.substr(2)));
      return found ? sql_value::of(std::move(*found)) : sql_value{};
    }
    if (e.word == "to_jsonb") return of[0];
    return around_.call(e.word, of);
  }

  // One value; for an aggregate, the greatest of all rows.
  sql_value scalar(const sql_statement& s) {
    const auto& out = s.outputs.front();
    const bool greatest = out.is == op::call && out.word == "max";
    sql_value most;
    const auto see = [&](const sql_view& v) {
      auto one = value(greatest ? out.of[0] : out, v);
      if (most.null() || (!one.null() && compare(one, most) > 0)) most = std::move(one);
    };
    if (s.gone) {
      for (const auto& g : gone_) see({.fence = &g});
      return most;
    }
    for_each(s, see);
    return most;
  }

  // ---- rows

  sql_result select(const sql_statement& s) {
    sql_result r;
    r.has_rows = true;
    const auto see = [&](const sql_view& v) {
      auto& row = r.rows.emplace_back();
      for (const auto& o : s.outputs) row.push_back(value(o, v));
    };
    if (s.meta || s.records) {
      for_each(s, see);
    } else {
      see({});
    }
    const auto most =
        s.limit ? static_cast<std::size_t>(value(*s.limit, {}).as_number()) : r.rows.size();
    if (r.rows.size() > most) r.rows.resize(most);
    return r;
  }

  template <class See>
  void for_each(const sql_statement& s, const See& see) {
    sql_view v;
    if (s.meta) {
      v.meta = &tables_.at_snapshot(by_, tables_.meta);
      const bool lone = !s.records;
      if (!admits(meta_name, tables_.meta, s.locks_meta, v, v.meta, lone ? &s : nullptr)) return;
      if (lone) return see(v);
    }
    bool any = false;
    for (const auto& name : candidates(s, v)) {
      const auto at = tables_.records.find(name);
      if (at == tables_.records.end()) continue;
      sql_view one = v;
      one.name = &at->first;
      if (!admits(name, at->second, s.locks_records, one, one.record, &s)) continue;
      any = true;
      see(one);
    }
    if (s.left_join && !any) see(v);
  }

  // Whether the row exists and matches. A row that must be locked is locked afterwards, and read as
  // it is then: PostgreSQL checks its snapshot first, and again after it has waited; InnoDB locks
  // the present version.
  bool admits(const std::string& name, sql_row& r, sql_lock how, sql_view& v,
              const sql_row::state*& seen, const sql_statement* s) {
    const auto wanted = [&](const sql_row::state& as) {
      seen = &as;
      return as.there && (s == nullptr || !s->has_where || value(s->where, v).is_true());
    };
    if (how == sql_lock::none) return wanted(tables_.at_snapshot(by_, r));
    if (around_.dialect == sql_dialect::postgres) {
      if (!wanted(tables_.at_snapshot(by_, r))) return false;
      tables_.lock(by_, name, r, how == sql_lock::exclusive);
      return seen == &tables_.latest(by_, r) || wanted(tables_.latest(by_, r));
    }
    const bool nobodys = !r.history.back().there && r.writer == nullptr;
    if (nobodys) return false;
    const auto held = by_.held.size();
    tables_.lock(by_, name, r, how == sql_lock::exclusive);
    if (wanted(tables_.latest(by_, r))) return true;
    if (by_.held.size() > held) tables_.unlock(by_, r);
    return false;
  }

  // The rows by the index if the statement names them, otherwise all rows.
  std::vector<std::string> candidates(const sql_statement& s, const sql_view& v) {
    std::vector<std::string> all;
    if (s.has_where && named_by(s.where, v, all)) return all;
    for (const auto& [name, r] : tables_.records) all.push_back(name);
    return all;
  }
  bool named_by(const sql_expression& e, const sql_view& v, std::vector<std::string>& all) {
    if (e.is == op::both) return named_by(e.of[0], v, all) || named_by(e.of[1], v, all);
    if (e.is == op::literal) return true;  // on false
    const bool by_name = (e.is == op::equal || e.is == op::in) && e.of[0].is == op::column &&
                         e.of[0].from == sql_column::name;
    if (!by_name) return false;
    for (std::size_t i = 1; i < e.of.size(); ++i) {
      auto one = value(e.of[i], v);
      if (e.word == "array") {
        all = items_of(one.text);
      } else {
        all.push_back(std::move(one.text));
      }
    }
    std::sort(all.begin(), all.end());
    return true;
  }

  // ---- changes: all locks first, since a statement that has to wait restarts

  struct target {
    std::string name;
    sql_row* row;
    sql_view seen;
  };

  sql_result change(const sql_statement& s) {
    if (s.source) {
      for (auto& r : prepare(*s.source).rows) gone_.push_back(std::move(r[0]));
    }
    auto r = prepare(s);
    for (auto& [row, to] : writes_) sql_tables::write(by_, *row, std::move(to));
    return r;
  }

  // Locks and decides; writes nothing yet.
  sql_result prepare(const sql_statement& s) {
    std::vector<target> all;
    if (s.meta) {
      sql_view v;
      if (admits(meta_name, tables_.meta, sql_lock::exclusive, v, v.meta, &s)) {
        all.push_back({meta_name, &tables_.meta, v});
      }
    } else {
      targets(s, all);
    }
    std::vector<sql_row::state> next;
    for (const auto& t : all) {
      if (!s.meta && t.name == tables_.refused) {
        throw sql_refused{"42501", "1142", "permission denied for this row"};
      }
      next.push_back(changed(s, t.seen));
    }
    sql_result r;
    r.affected = all.size();
    r.has_rows = !s.returning.empty();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool removes = s.what == verb::remove;
      if (!removes) (s.meta ? all[i].seen.meta : all[i].seen.record) = &next[i];
      if (r.has_rows) r.rows.push_back(returned(s, all[i].seen));
      writes_.emplace_back(all[i].row, next[i]);
    }
    return r;
  }

  void targets(const sql_statement& s, std::vector<target>& all) {
    for (const auto& name : candidates(s, {})) {
      const auto at = tables_.records.find(name);
      if (at == tables_.records.end()) continue;
      sql_view v{.name = &at->first};
      if (is_target(s, name, at->second, v)) all.push_back({name, &at->second, v});
    }
  }
  bool is_target(const sql_statement& s, const std::string& name, sql_row& r, sql_view& v) try {
    return admits(name, r, sql_lock::exclusive, v, v.record, &s);
  } catch (const sql_must_wait&) {
    if (!s.skips_locked) throw;
    return false;
  }

  sql_row::state changed(const sql_statement& s, const sql_view& v) {
    if (s.what == verb::remove) return {};
    auto next = s.meta ? *v.meta : *v.record;
    for (const auto& [to, e] : s.assignments) {
      auto is = value(e, v);
      if (to == sql_column::record) {
        next.record = std::move(is.text);
      } else {
        next.number = is.as_number();
      }
    }
    return next;
  }

  std::vector<sql_value> returned(const sql_statement& s, const sql_view& v) {
    std::vector<sql_value> row;
    for (const auto& e : s.returning) row.push_back(value(e, v));
    return row;
  }

  sql_result insert(const sql_statement& s) {
    sql_result r;
    r.has_rows = !s.returning.empty();
    for (auto& from : select(*s.source).rows) {
      const std::string name = from[0].as_text();
      sql_row& row = tables_.record(name);
      if (row.writer != nullptr && row.writer != &by_) throw sql_must_wait{&row};
      if (sql_tables::latest(by_, row).there) {
        if (s.conflict_locks) tables_.lock(by_, name, row, true);
        continue;
      }
      tables_.lock(by_, name, row, true);
      sql_row::state made{.there = true, .number = from[1].as_number(), .record = from[2].text};
      if (r.has_rows) r.rows.push_back(returned(s, {.name = &name, .record = &made}));
      sql_tables::write(by_, row, std::move(made));
      ++r.affected;
    }
    return r;
  }

  static inline const std::string meta_name{};

  const std::span<const sql_value> parameters_;
  sql_tables& tables_;
  sql_transaction& by_;
  const sql_surroundings& around_;
  std::vector<sql_value> gone_;
  std::vector<std::pair<sql_row*, sql_row::state>> writes_;
};

}  // namespace

sql_result carry_out(const sql_statement& s, std::span<const sql_value> parameters,
                     sql_tables& tables, sql_transaction& by, const sql_surroundings& around) {
  if (!by.snapshot) by.snapshot = tables.commits;
  sql_result r = runner(parameters, tables, by, around).run(s);
  by.snapshot.reset();
  return r;
}

bool writes(const sql_statement& s) noexcept {
  return s.what == verb::insert || s.what == verb::update || s.what == verb::remove ||
         s.locks_meta != sql_lock::none || s.locks_records != sql_lock::none;
}

}  // namespace simulation
