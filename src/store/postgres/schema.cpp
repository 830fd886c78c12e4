#include "store/postgres/schema.hpp"

#include <algorithm>

namespace holdfast::store::postgres {

namespace {

// 'holdfast' in bytes: sessions that create the tables at the same moment do it one after the
// other.
constexpr const char* one_at_a_time =
    "select pg_catalog.pg_advisory_xact_lock(7525352680829580148)";

/// Replaces each "@." by the schema.
std::string in_schema(std::string text, const std::string& schema) {
  const std::string prefix = quoted(schema) + ".";
  for (std::size_t at = text.find("@."); at != text.npos; at = text.find("@.", at)) {
    text.replace(at, 2, prefix);
    at += prefix.size();
  }
  return text;
}

// `json` keeps the text unchanged. Half of a page is left free, so that the next version of a row
// is on the same page as the last one and no index changes.
constexpr const char* make_records = R"sql(create table @.holdfast_records (
  name text collate "C" primary key,
  version bigint not null,
  record json not null
) with (fillfactor = 50))sql";

constexpr const char* make_meta = R"sql(create table @.holdfast_meta (
  format integer not null,
  fence_floor bigint not null,
  the_only_row boolean primary key default true check (the_only_row),
  id text not null default md5(random()::text || clock_timestamp()::text)
))sql";

constexpr const char* fill_meta = "insert into @.holdfast_meta values (1, 0)";

// For people. Ids are shortened to a distinguishing part, because a program that knows a whole id
// can release the lock. The fence is the number that lease::fence() returns.
constexpr const char* make_locks_view = R"sql(create view @.holdfast_locks as
select name, record->>1 as kind, left(h->>0, 8) as holder, split_part(h->>6, ' ', 1) as host,
  split_part(h->>6, ' ', 2) as pid, split_part(h->>6, ' ', 3) as program,
  substring(h->>6 from '^\S* \S* \S* (.*)$') as reason,
  to_timestamp((h->>4)::float8 / 1e6) as since, to_timestamp((h->>3)::float8 / 1e6) as expires,
  (h->>2)::bigint * 4096 as fence, case when h is null then 0 else json_array_length(record->4) end
  as holders, json_array_length(record->(case record->>1 when 'latch' then 6 else 5 end)) as waiters,
  version, record
from (
  select *, case record->>1 when 'latch' then null else record->4->0 end as h
  from @.holdfast_records where json_typeof(record) = 'array' and record->>2 <> '0'
) as used)sql";

constexpr const char* make_waiters_view = R"sql(create view @.holdfast_waiters as
select name, place, left(w->>0, 8) as waiter, split_part(w->>7, ' ', 1) as host,
  split_part(w->>7, ' ', 2) as pid, split_part(w->>7, ' ', 3) as program,
  substring(w->>7 from '^\S* \S* \S* (.*)$') as reason,
  to_timestamp((w->>5)::float8 / 1e6) as since, to_timestamp((w->>4)::float8 / 1e6) as expires
from @.holdfast_records, json_array_elements(case json_typeof(record) when 'array' then
  record->(case record->>1 when 'latch' then 6 else 5 end) end) with ordinality as q(w, place))sql";

constexpr const char* all_objects[] = {make_records, make_meta, fill_meta, make_locks_view,
                                       make_waiters_view};

struct facts {
  bool schema = false;
  bool tables = false;
};

// Reads the catalogue itself: to_regclass() would remember that the table was missing before the
// wait.
result<facts> look(wire& w, const std::string& schema, boot_time deadline) {
  constexpr const char* sql =
      "select exists (select from pg_catalog.pg_namespace where nspname = $1), "
      "exists (select from pg_catalog.pg_class c join pg_catalog.pg_namespace n "
      "on n.oid = c.relnamespace where nspname = $1 and relname = 'holdfast_meta')";
  const auto got = w.ask({{sql, {schema}}}, deadline);
  if (!got) return got.error();
  return facts{got->front().text(0, 0) == "t", got->front().text(0, 1) == "t"};
}

failure ask_somebody(failure f, const std::string& schema) {
  f.what +=
      ". The tables of holdfast do not exist, and this user has no right to create them. A user "
      "with that right can run the following text; replace app by this user's name: " +
      script(schema);
  return f;
}

status make(wire& w, const std::string& schema, const facts& there, boot_time deadline) {
  std::vector<std::string> texts;
  if (!there.schema) texts.push_back("create schema " + quoted(schema));
  for (const char* const object : all_objects) texts.push_back(in_schema(object, schema));
  texts.emplace_back("commit");
  std::vector<statement> all;
  all.reserve(texts.size());
  for (const auto& text : texts) all.push_back({text});
  auto made = w.ask(all, deadline);
  if (made) return done{};
  if (made.error().code == errc::not_permitted) return ask_somebody(made.error(), schema);
  return std::move(made.error());
}

status make_unless_there(wire& w, const std::string& schema, boot_time deadline) {
  constexpr const char* begin = "begin isolation level read committed";
  if (auto begun = w.ask({{begin}, {one_at_a_time}}, deadline); !begun)
    return std::move(begun.error());
  const auto there = look(w, schema, deadline);
  if (!there) return there.error();
  if (!there->tables) return make(w, schema, *there, deadline);
  const auto over = w.ask({{"rollback"}}, deadline);
  return over ? status(done{}) : status(over.error());
}

failure somebody_elses(const std::string& schema) {
  return {errc::foreign_data, "the table " + schema +
                                  ".holdfast_meta was not made by holdfast; give locks a schema of "
                                  "their own (?schema=)"};
}

// A trigger that runs before a change can replace the new record by the old one. The server counts
// that as a change, so two sessions would hold one lock.
failure has_a_trigger(const std::string& schema, std::string_view trigger) {
  return {errc::foreign_data,
          "the trigger " + quoted(trigger) + " of the tables in the schema " + schema +
              " runs before a change, and may undo it: two could hold one lock. Remove it, or let "
              "it run after the change"};
}

// Selects the columns on which the statements rely, so that an altered table is detected here.
status check(wire& w, const std::string& schema, boot_time deadline) {
  const std::string sql = in_schema(
      "select m.format, r.name, r.version, r.record, (select t.tgname from pg_catalog.pg_trigger t "
      "where t.tgrelid in (m.tableoid, $1::pg_catalog.regclass) and not t.tgisinternal and "
      "t.tgtype & 2 <> 0 and t.tgenabled <> 'D' limit 1) from @.holdfast_meta m left join "
      "@.holdfast_records r on false",
      schema);
  constexpr Oid types[] = {23, 25, 20, 114};  // int4, text, int8, json
  const auto got = w.ask({{sql, {in_schema("@.holdfast_records", schema)}}}, deadline);
  if (!got) return got.error();
  const answer& a = got->front();
  if (a.rows() != 1) return somebody_elses(schema);
  for (int i = 0; i < 4; ++i) {
    if (PQftype(a.get(), i) != types[i]) return somebody_elses(schema);
  }
  if (!a.is_null(0, 4)) return has_a_trigger(schema, a.text(0, 4));
  const auto version = a.number(0, 0);
  if (version == format_version) return done{};
  if (version < format_version) return somebody_elses(schema);
  return failure{errc::newer_format, "the tables in the schema " + schema + " have format " +
                                         std::to_string(version) +
                                         ", of a newer holdfast; this program knows format " +
                                         std::to_string(format_version) + ": update this program"};
}

}  // namespace

std::string quoted(std::string_view identifier) {
  std::string text = "\"";
  for (const char c : identifier) text.append(c == '"' ? 2 : 1, c);
  return text + "\"";
}

std::string script(const std::string& schema) {
  std::string text = "create schema if not exists " + quoted(schema) + "; ";
  for (const char* const object : all_objects) text += in_schema(object, schema) + "; ";
  text += "grant usage on schema " + quoted(schema) + " to app; " +
          in_schema(
              "grant select, insert, update, delete on @.holdfast_records to app; "
              "grant select, update on @.holdfast_meta to app;",
              schema);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

status set_up_tables(wire& w, const std::string& schema, boot_time deadline) {
  const auto there = look(w, schema, deadline);
  if (!there) return there.error();
  if (!there->tables) {
    if (auto made = make_unless_there(w, schema, deadline); !made) return made;
  }
  return check(w, schema, deadline);
}

}  // namespace holdfast::store::postgres
