#include "store/postgres/link.hpp"

#include <algorithm>

#include "store/postgres/schema.hpp"

namespace holdfast::store::postgres {

namespace {

std::string as_text(std::int64_t number) { return std::to_string(number); }

failure table_is_not_ours(const answer& a) {
  if (a.rows() == 1 && a.number(0, 4) > format_version) {
    return {errc::newer_format,
            "the tables have been changed by a newer holdfast meanwhile: update this program"};
  }
  return {errc::foreign_data, "holdfast_meta is not as holdfast made it: it has one row"};
}

// The row was just created, or locked.
failure is_skipped() {
  return {
      errc::foreign_data,
      "the server skipped the row of a name: holdfast_meta has no row any more, or a trigger, a "
      "rule or a policy of the table holdfast_records hides rows, or leaves them unchanged; "
      "remove it"};
}

// A row that its own transaction has just created has no record yet.
std::string record_of(std::string_view text) {
  return text == "null" ? std::string() : std::string(text);
}

result<sql::row> row_of(const answer& a) {
  if (a.rows() != 1 || a.number(0, 4) != format_version) return table_is_not_ours(a);
  const bool there = !a.is_null(0, 0);
  return sql::row{.there = there,
                  .version = a.number(0, 0),
                  .record = record_of(a.text(0, 1)),
                  .now_at = a.number(0, 2),
                  .fence_floor = a.number(0, 3),
                  .too_long = there && a.is_null(0, 1)};
}

// Null for a record that is too long, so that it does not leave the server.
std::string bounded(const std::string& record) {
  return "case when pg_catalog.octet_length(" + record +
         "::text) <= " + std::to_string(sql::longest_read) + " then " + record + " end";
}

// A literal array of text: quotes and backslashes are escaped, and no other character is special.
std::string array_of(std::span<const std::string> names) {
  std::string text = "{";
  for (const auto& name : names) {
    text += text.size() > 1 ? ",\"" : "\"";
    for (const char c : name) {
      if (c == '"' || c == '\\') text += '\\';
      text += c;
    }
    text += '"';
  }
  return text + "}";
}

}  // namespace

statements::statements(const std::string& schema) : records(quoted(schema) + ".holdfast_records") {
  const std::string meta = quoted(schema) + ".holdfast_meta";
  const std::string clock = server_clock;
  const std::string as_read =
      "select r.version, " + bounded("r.record") + ", " + clock + ", m.fence_floor, m.format ";
  // Two guesses that both succeed differ by at most 2 ms: the part of a lease's margin
  // (lease_timer.hpp) that is not for the rates of clocks.
  const std::string not_late = " and ($4::bigint is null or " + clock + " <= $4)";
  const std::string in_time =
      " and ($3::bigint is null or " + clock + " - $3 between -500 and 1500)" + not_late;

  read = as_read + "from " + meta + " m left join " + records + " r on r.name = $1";
  // Reads the floor and locks its row: a sweep raises the floor in the transaction that removes a
  // row, so a change decided before the sweep is refused here.
  keep_floor = "select 1 from " + meta + " for share";
  insert = "insert into " + records + " select $1::text, $2::bigint, $3::json from " + meta +
           " m where m.fence_floor <= $2::bigint" + not_late +
           " for share of m on conflict (name) do nothing";
  update = "update " + records + " set record = $5, version = version + 1 where name = $1 and " +
           "version = $2" + in_time;
  update_telling_time = update + " returning " + clock;
  // The most frequent statement. It reads the clock once, and has no alternatives for other cases.
  update_guessed = "update " + records + " set record = $4, version = version + 1 where name = $1" +
                   " and version = $2 and pg_catalog.abs(" + rough_clock +
                   " - $3::float8 - 500::float8) < 1000::float8";

  // A prepared statement keeps its plan. A plan made while the table had a page or two would read
  // the whole table from then on, until the server analyses the table again. The index costs no
  // more then, and stays cheap when the table grows. A role may have turned a kind of scan off,
  // which makes plans look so expensive that the server would compile each of them. And its
  // search_path may begin with a schema that has operators or types like those of the server. And
  // its client_min_messages may suppress a warning (wire::hear).
  const std::string plans = "pg_catalog.set_config('random_page_cost', '0', false)",
                    path = "pg_catalog.set_config('search_path', 'pg_catalog', false)",
                    compiled = "pg_catalog.set_config('jit', 'off', false)",
                    heard = "pg_catalog.set_config('client_min_messages', 'warning', false)";
  set_session = "select pg_catalog.set_config('lock_timeout', $1, false), " + plans + ", " + path +
                ", " + heard + ", case when pg_catalog.current_setting('jit', true) = 'on' then " +
                compiled + " end";
  limit = "select pg_catalog.set_config('lock_timeout', $1, true)";
  begin = "begin isolation level read committed";
  limits =
      "select pg_catalog.set_config('lock_timeout', $1, true), "
      "pg_catalog.set_config('idle_in_transaction_session_timeout', $1, true)";
  // Locks an existing row, without writing to it.
  make = "insert into " + records + " as r select $1::text, greatest(" + clock +
         ", m.fence_floor), 'null' from " + meta +
         " m on conflict (name) do update set version = r.version where false";
  read_locked =
      as_read + "from " + meta + " m, " + records + " r where r.name = $1 for update of r";
  // Nothing behind a failed statement is carried out, not even the commit.
  fail_if_late = "select 1 / (" + clock + " <= $1::bigint)::int";
  put_locked = "update " + records + " set record = $2, version = version + 1 where name = $1";
  remove_locked = "delete from " + records + " where name = $1";
  commit = "commit";
  rollback = "rollback";

  take_floor = "select 1 from " + meta + " for no key update";
  // A locked row is in use. Waiting for it with other rows locked could form a cycle with a
  // transaction that holds it and waits for one of those.
  sweep = "with gone as (delete from " + records + " where name = any (array(select name from " +
          records +
          " where name = any ($1) and record->>2 = '0' and record->>3 ~ '^[0-9]{1,18}$' and "
          "record->>1 not in ('latch', 'rate_limiter', 'election') for update skip locked)) "
          "returning greatest((record->>3)::bigint, version) + 1 as fence) update " +
          meta +
          " set fence_floor = (select max(fence) from gone) "
          "where fence_floor < (select max(fence) from gone)";
  const std::string all = "select name, coalesce(" + bounded("record") + ", '" +
                          sql::unread_record + "') from " + records;
  entries = all + " order by name";
  entries_behind = all + " where name > $1 order by name limit $2::bigint";
  id = "select pg_catalog.to_jsonb(m)->>'id' from " + meta + " m";
  tell = "select pg_catalog.pg_notify($1, $2)";
}

result<std::unique_ptr<sql::row_link>> link::over(std::unique_ptr<wire> w, const statements& texts,
                                                  std::chrono::milliseconds patience,
                                                  boot_time deadline) {
  std::unique_ptr<link> made{new link(std::move(w), texts, patience)};
  if (!made->wire_->pooled()) {
    const auto said = made->wire_->ask({{texts.set_session, {as_text(patience.count())}}},
                                       std::min(deadline, boot_clock::now() + patience));
    if (!said) return said.error();
  }
  return std::unique_ptr<sql::row_link>(std::move(made));
}

// The whole patience if the request has just begun.
std::chrono::milliseconds link::patience_until(boot_time deadline) const noexcept {
  const auto left = std::chrono::floor<std::chrono::milliseconds>(deadline - boot_clock::now());
  const auto part = left / 4 * 3;
  return part > patience_ / 16 * 15 ? patience_ : std::max(part, std::chrono::milliseconds(1));
}

result<std::vector<sql::row>> link::read(std::span<const std::string_view> names,
                                         boot_time deadline) {
  std::vector<statement> all;
  for (const auto name : names) all.push_back({sql_.read, {std::string(name)}});
  const auto got = wire_->ask(all, deadline);
  if (!got) return got.error();
  std::vector<sql::row> rows;
  for (const answer& a : *got) {
    auto one = row_of(a);
    if (!one) return std::move(one.error());
    rows.push_back(std::move(*one));
  }
  return rows;
}

statement link::replacing(const sql::replacement& r) const {
  const std::string name(r.name);
  const auto if_any = [](std::optional<std::int64_t> at) {
    return at ? std::optional(as_text(*at)) : std::nullopt;
  };
  const auto assumed = if_any(r.assumed_now), until = if_any(r.until_at);
  if (!r.there) return {sql_.insert, {name, as_text(r.version), std::string(r.record), until}};
  if (assumed && !until && !r.asks_time) {
    return {sql_.update_guessed, {name, as_text(r.version), assumed, std::string(r.record)}};
  }
  return {r.asks_time ? sql_.update_telling_time : sql_.update,
          {name, as_text(r.version), assumed, until, std::string(r.record)}};
}

result<std::vector<sql::replaced>> link::replace(std::span<const sql::replacement> all,
                                                 boot_time deadline) {
  std::vector<statement> texts;
  const auto patience = patience_until(deadline);
  if (wire_->pooled() || patience < patience_) {
    texts.push_back({sql_.limit, {as_text(patience.count())}});
  }
  // Locks the floor before any row, as a sweep does that raises it, so they never wait for each
  // other.
  const bool makes = std::any_of(all.begin(), all.end(), [](const auto& r) { return !r.there; });
  if (makes && all.size() > 1) texts.push_back({sql_.keep_floor});
  for (const auto& r : all) texts.push_back(replacing(r));
  const auto got = wire_->ask(texts, deadline);
  if (!got) return got.error();
  std::vector<sql::replaced> outcomes;
  outcomes.reserve(all.size());
  const auto answers = std::span(*got).last(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const answer& a = answers[i];
    const sql::replacement& r = all[i];
    const bool tells_time = a.rows() == 1;
    outcomes.push_back(
        {a.changed() == 1, r.there ? r.version + 1 : r.version, tells_time ? a.number(0, 0) : 0});
  }
  return outcomes;
}

// The time-outs are for this transaction only: a program that is stopped in the middle of it must
// not block all others.
result<std::vector<sql::row>> link::lock(std::span<const std::string_view> names,
                                         boot_time deadline) {
  std::vector<statement> texts{{sql_.begin},
                               {sql_.limits, {as_text(patience_until(deadline).count())}}};
  const std::size_t before = texts.size();
  for (const auto name : names) {
    texts.push_back({sql_.make, {std::string(name)}});
    texts.push_back({sql_.read_locked, {std::string(name)}});
  }
  const auto got = wire_->ask(texts, deadline);
  if (!got) return undone(got.error(), deadline);
  std::vector<sql::row> rows;
  rows.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const answer& a = (*got)[before + 2 * i + 1];
    if (a.rows() == 0) return is_skipped();
    auto one = row_of(a);
    if (!one) return std::move(one.error());
    rows.push_back(std::move(*one));
  }
  return rows;
}

status link::unlock(std::span<const sql::rewrite> all, std::int64_t until_at, boot_time deadline) {
  std::vector<statement> texts;
  texts.reserve(all.size() + 2);
  if (!all.empty()) texts.push_back({sql_.fail_if_late, {as_text(until_at)}});
  for (const auto& [name, record] : all) {
    const std::string key(name);
    texts.push_back(record.empty() ? statement{sql_.remove_locked, {key}}
                                   : statement{sql_.put_locked, {key, std::string(record)}});
  }
  texts.push_back({all.empty() ? sql_.rollback : sql_.commit});
  const auto got = wire_->ask(texts, deadline);
  if (!got) return undone(got.error(), deadline);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if ((*got)[i + 1].changed() != 1) return is_skipped();
  }
  return done{};
}

// A request that lost to another session is repeated over this connection, which is in a failed
// transaction: rolls that back.
failure link::undone(failure why, boot_time deadline) {
  if (why.code == errc::busy && wire_->alive()) (void)wire_->ask({{sql_.rollback}}, deadline);
  return why;
}

status link::sweep(std::span<const std::string> names, boot_time deadline) {
  const auto got = wire_->ask({{sql_.take_floor}, {sql_.sweep, {array_of(names)}}}, deadline);
  return got ? status(done{}) : status(got.error());
}

result<std::vector<state_store::entry>> link::entries(boot_time deadline) {
  return entries_of({sql_.entries}, deadline);
}

result<std::vector<state_store::entry>> link::entries_behind(std::string_view name,
                                                             std::size_t most, boot_time deadline) {
  return entries_of({sql_.entries_behind, {std::string(name), std::to_string(most)}}, deadline);
}

result<std::vector<state_store::entry>> link::entries_of(statement asked, boot_time deadline) {
  const auto got = wire_->ask({std::move(asked)}, deadline);
  if (!got) return got.error();
  std::vector<state_store::entry> all;
  const answer& a = got->front();
  all.reserve(static_cast<std::size_t>(a.rows()));
  for (int i = 0; i < a.rows(); ++i) {
    all.push_back({std::string(a.text(i, 0)), record_of(a.text(i, 1))});
  }
  return all;
}

result<std::string> link::id_of_tables(boot_time deadline) {
  const auto got = wire_->ask({{sql_.id}}, deadline);
  if (!got) return got.error();
  const answer& a = got->front();
  return a.rows() == 1 ? std::string(a.text(0, 0)) : std::string();
}

// Without the right to delete, sweeps fail. No caller waits for a sweep, so no error reports that.
result<store::facts> link::facts(boot_time deadline) {
  static constexpr const char* asked =
      "select name, setting from pg_settings where name in ('server_version', 'fsync',"
      " 'synchronous_commit', 'synchronous_standby_names', 'max_connections')"
      " union all select 'connections', count(*)::text from pg_stat_activity"
      " union all select 'replicas', count(*)::text from pg_stat_replication"
      " union all select 'missing_right', 'delete on holdfast_records'"
      " where not pg_catalog.has_table_privilege($1::text, 'delete')";
  const auto got = wire_->ask({{asked, {sql_.records}}}, deadline);
  if (!got) return got.error();
  const answer& a = got->front();
  store::facts found;
  for (int row = 0; row < a.rows(); ++row) {
    found.push_back({{}, std::string(a.text(row, 0)), std::string(a.text(row, 1))});
  }
  if (wire_->pooled()) found.push_back({{}, "pooler", "on"});
  return found;
}

// One round trip and one transaction, because each transaction that notifies waits for the lock of
// the server's queue of notifications.
status link::tell(std::span<const std::string> channels, std::span<const std::string> lines,
                  boot_time deadline) {
  std::vector<statement> all;
  all.reserve(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i)
    all.push_back({sql_.tell, {channels[i], lines[i]}});
  const auto got = wire_->ask(all, deadline);
  return got ? status(done{}) : status(got.error());
}

}  // namespace holdfast::store::postgres
