#include "store/mariadb/schema.hpp"

#include <algorithm>

namespace holdfast::store::mariadb {

namespace {

/// Replaces each "@." by the database.
std::string in_database(std::string text, const tables& t) {
  const std::string prefix = t.database + ".";
  for (std::size_t at = text.find("@."); at != text.npos; at = text.find("@.", at)) {
    text.replace(at, 2, prefix);
    at += prefix.size();
  }
  return text;
}

// Names are bytes, so that no collation treats two names as the same. Each statement may be run
// again, because this server cannot roll it back.
constexpr const char* make_records = R"sql(create table if not exists @.holdfast_records (
  name varbinary(255) primary key,
  version bigint not null,
  record longtext character set utf8mb4 collate utf8mb4_bin not null check (json_valid(record))
) engine = InnoDB)sql";

constexpr const char* make_meta = R"sql(create table if not exists @.holdfast_meta (
  format integer not null,
  fence_floor bigint not null,
  the_only_row integer primary key default 1 check (the_only_row = 1),
  id varchar(36) character set ascii not null default (uuid())
) engine = InnoDB)sql";

constexpr const char* fill_meta =
    "insert into @.holdfast_meta (format, fence_floor, the_only_row) values (1, 0, 1) "
    "on duplicate key update format = format";

// For people. Ids are shortened to a distinguishing part, because a program that knows a whole id
// can release the lock. The fence is the number that lease::fence() returns. A note is host, pid,
// program and reason. A latch has a number in the place of the holders, and this server takes the
// first element of a number to be the number itself.
constexpr const char* make_locks_view = R"sql(create or replace view @.holdfast_locks as
select convert(name using utf8mb4) as name, json_value(record, '$[1]') as kind,
  case json_value(record, '$[1]') when 'latch' then null
    else left(json_value(record, '$[4][0][0]'), 8) end as holder,
  substring_index(json_value(record, '$[4][0][6]'), ' ', 1) as host,
  substring_index(substring_index(json_value(record, '$[4][0][6]'), ' ', 2), ' ', -1) as pid,
  substring_index(substring_index(json_value(record, '$[4][0][6]'), ' ', 3), ' ', -1) as program,
  regexp_replace(json_value(record, '$[4][0][6]'), '^[^ ]* [^ ]* [^ ]* ?', '') as reason,
  from_unixtime(json_value(record, '$[4][0][4]') / 1000000) as since,
  from_unixtime(json_value(record, '$[4][0][3]') / 1000000) as expires,
  cast(json_value(record, '$[4][0][2]') as unsigned) * 4096 as fence,
  case json_value(record, '$[1]') when 'latch' then 0 else json_length(record, '$[4]') end as holders,
  case json_value(record, '$[1]') when 'latch' then json_length(record, '$[6]')
    else json_length(record, '$[5]') end as waiters,
  version, record
from @.holdfast_records where json_type(record) = 'ARRAY' and json_value(record, '$[2]') <> '0')sql";

constexpr const char* make_waiters_view = R"sql(create or replace view @.holdfast_waiters as
select convert(name using utf8mb4) as name, w.place, left(w.id, 8) as waiter,
  substring_index(w.note, ' ', 1) as host,
  substring_index(substring_index(w.note, ' ', 2), ' ', -1) as pid,
  substring_index(substring_index(w.note, ' ', 3), ' ', -1) as program,
  regexp_replace(w.note, '^[^ ]* [^ ]* [^ ]* ?', '') as reason,
  from_unixtime(w.since_at / 1000000) as since, from_unixtime(w.expires_at / 1000000) as expires
from @.holdfast_records r, json_table(json_query(r.record,
    case json_value(r.record, '$[1]') when 'latch' then '$[6]' else '$[5]' end), '$[*]' columns (
  place for ordinality, id text path '$[0]', expires_at bigint path '$[4]',
  since_at bigint path '$[5]', note text path '$[7]')) w)sql";

// The row of holdfast_meta comes last: it shows that all the others are there.
constexpr const char* all_objects[] = {make_records, make_meta, make_locks_view, make_waiters_view,
                                       fill_meta};

std::string database_if_missing(const tables& t) {
  return "create database if not exists " + t.database;
}

failure ask_somebody(failure f, const tables& t) {
  f.what +=
      ". Tables or views of holdfast are missing, and this user has no right to create them. A "
      "user with that right can run the following text; replace app by this user's name: " +
      script(t);
  return f;
}

std::string as_text(std::string_view quoted_name) {
  std::string text = "'";
  for (const char c : quoted_name.substr(1, quoted_name.size() - 2)) {
    text.append(c == '\'' || c == '\\' ? 2 : 1, c);
  }
  return text + "'";
}

result<bool> is_there(link& over, const char* what, const std::string& text) {
  const auto got =
      over.ask("select exists (select 1 from information_schema." + text + ") as " + what);
  if (!got) return got.error();
  return got->front().rows.at(0).at(0) == "1";
}

status make(link& over, const tables& t) {
  if (auto may = over.must_take_writes(); !may) return may;
  auto there = is_there(over, "x", "schemata where schema_name = " + as_text(t.database));
  if (!there) return std::move(there.error());
  std::vector<std::string> texts;
  if (!*there) texts.push_back(database_if_missing(t));
  for (const char* const object : all_objects) texts.push_back(in_database(object, t));
  for (const auto& text : texts) {
    auto made = over.ask(text);
    if (made) continue;
    if (made.error().code == errc::not_permitted) return ask_somebody(made.error(), t);
    return std::move(made.error());
  }
  return done{};
}

failure somebody_elses(const tables& t) {
  return {errc::foreign_data,
          t.meta + " was not made by holdfast; give locks a database of their own"};
}

// A server makes tables of another engine if enforce_storage_engine says so, and its sql_mode lacks
// NO_ENGINE_SUBSTITUTION.
failure keeps_no_row_locked(const tables& t, const std::string& table, const std::string& engine) {
  const std::string whole = t.database + "." + quoted(table);
  return {errc::unsupported, "the engine of the table " + whole + " is " + engine +
                                 ", which has no transactions: two could hold one lock. Run: alter "
                                 "table " +
                                 whole + " engine = InnoDB"};
}

// The engine of what it shows is not known here, and it has none of its own.
failure is_a_view(const tables& t, const std::string& table) {
  return {errc::foreign_data, t.database + "." + quoted(table) +
                                  " is a view, which holdfast did not make; give locks a database "
                                  "of their own"};
}

// One name a query: then the server opens one table, and not all of the database.
std::string not_innodb(const char* table, const tables& t) {
  return "select table_name, case table_type when 'VIEW' then null else engine end from "
         "information_schema.tables where table_schema = " +
         as_text(t.database) + " and table_name = '" + table +
         "' and (table_type = 'VIEW' or engine <> 'InnoDB')";
}

/// Empty if the row is missing (or not there yet).
result<std::string> format_of(link& over, const tables& t) {
  const auto got =
      over.ask("select m.format, r.name, r.version, r.record from " + t.meta + " m left join " +
               t.records + " r on false; " + not_innodb("holdfast_records", t) + " union all " +
               not_innodb("holdfast_meta", t));
  if (!got) return got.error();
  if (const auto& others = got->back().rows; !others.empty()) {
    const std::string table = others[0].at(0).value_or("");
    const auto& engine = others[0].at(1);
    return engine ? keeps_no_row_locked(t, table, *engine) : is_a_view(t, table);
  }
  const auto& rows = got->front().rows;
  if (rows.size() > 1) return somebody_elses(t);
  return rows.empty() ? std::string() : rows[0][0].value_or("?");
}

status check(const result<std::string>& format, const tables& t) {
  if (!format) return format.error();
  if (*format == std::to_string(format_version)) return done{};
  if (format->size() != 1 || *format < std::to_string(format_version)) return somebody_elses(t);
  return failure{errc::newer_format, "the tables in " + t.database + " have format " + *format +
                                         ", of a newer holdfast; this program knows format " +
                                         std::to_string(format_version) + ": update this program"};
}

}  // namespace

std::string script(const tables& t) {
  std::string text = database_if_missing(t) + "; ";
  for (const char* const object : all_objects) text += in_database(object, t) + "; ";
  text += in_database(
      "grant select, insert, update, delete on @.holdfast_records to app; "
      "grant select, update on @.holdfast_meta to app;",
      t);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

status set_up_tables(link& over, const tables& t) {
  const auto there = is_there(
      over, "x",
      "tables where table_name = 'holdfast_meta' and table_schema = " + as_text(t.database));
  if (!there) return there.error();
  if (!*there) {
    if (auto made = make(over, t); !made) return made;
  }
  auto format = format_of(over, t);
  // Another process is creating the tables now, or ended in the middle of that.
  if (format && format->empty()) {
    if (auto made = make(over, t); !made) return made;
    format = format_of(over, t);
  }
  return check(format, t);
}

}  // namespace holdfast::store::mariadb
