#include "store/sqlite/schema.hpp"

#include <array>
#include <cstdlib>
#include <optional>

#include "store/sql/is_free.hpp"
#include "store/sql/record_bound.hpp"
#include "store/sqlite/explain.hpp"
#include "store/sqlite/moment.hpp"

namespace holdfast::store::sqlite {
namespace {

// 'hfLK', shown by file(1) and `PRAGMA application_id`.
constexpr std::int64_t application_id = 0x68664C4B;
constexpr std::int64_t format_version = 1;

// One row a name; `record` is the text of family/record_codec.cpp. The row of an unused name stays
// for a while, so that the next lock changes only one page.
constexpr const char* tables = R"sql(
CREATE TABLE holdfast_locks(name TEXT NOT NULL PRIMARY KEY, record TEXT NOT NULL) STRICT;
CREATE TABLE holdfast_meta(key TEXT NOT NULL PRIMARY KEY, value ANY NOT NULL) STRICT;
INSERT INTO holdfast_meta VALUES
  ('about', 'locks of the holdfast library; look at holdfast_holders and holdfast_waiters'),
  ('boot_id', ''), ('wall_minus_boot_us', 0), ('fence_floor', 0);
)sql";

// For people. Uses plain functions only, so that any sqlite3 shell can read the views. Ids are
// shortened to a distinguishing part, because a program that knows a whole id can release the lock.
constexpr const char* views = R"sql(
CREATE VIEW holdfast_participants AS
WITH clock(now_us) AS (
  SELECT (julianday('now') - 2440587.5) * 86400e6 - value FROM holdfast_meta
  WHERE key = 'wall_minus_boot_us'),
readable(name, kind, record) AS (
  SELECT name, json_extract(record, '$[1]'), record FROM holdfast_locks
  WHERE CASE WHEN json_valid(record) THEN json_extract(record, '$[0]') END = 1),
holding AS (
  SELECT name, kind, 'holds' AS does, 0 AS place, value AS v, '$[2]' AS fence_at,
         '$[3]' AS expires_at, '$[4]' AS since_at, '$[6]' AS note_at
  FROM readable, json_each(record, '$[4]') WHERE kind <> 'latch'),
waiting AS (
  SELECT name, kind, 'waits', key + 1, value, '$[99]', '$[4]', '$[5]', '$[7]'
  FROM readable, json_each(record, CASE kind WHEN 'latch' THEN '$[6]' ELSE '$[5]' END)),
everyone AS (SELECT * FROM holding UNION ALL SELECT * FROM waiting),
noted AS (SELECT *, json_extract(v, note_at) || '   ' AS note FROM everyone),
hosted AS (SELECT *, substr(note, instr(note, ' ') + 1) AS from_pid FROM noted),
pidded AS (SELECT *, substr(from_pid, instr(from_pid, ' ') + 1) AS from_program FROM hosted)
SELECT name, kind, does, place,
  substr(json_extract(v, '$[0]'), 1, 8) AS id,
  substr(note, 1, instr(note, ' ') - 1) AS host,
  CAST(substr(from_pid, 1, instr(from_pid, ' ') - 1) AS INTEGER) AS pid,
  substr(from_program, 1, instr(from_program, ' ') - 1) AS program,
  trim(substr(from_program, instr(from_program, ' ') + 1)) AS reason,
  json_extract(v, '$[1]') AS weight,
  json_extract(v, fence_at) * 4096 AS fence,
  datetime(json_extract(v, since_at) / 1000000, 'unixepoch') AS since_utc,
  round((json_extract(v, expires_at) - now_us) / 1e6, 1) AS expires_in_s
FROM pidded, clock;
CREATE VIEW holdfast_holders AS
SELECT name, kind, id, host, pid, program, reason, weight, fence, since_utc, expires_in_s
FROM holdfast_participants WHERE does = 'holds';
CREATE VIEW holdfast_waiters AS
SELECT name, kind, place, id, host, pid, program, reason, weight, since_utc, expires_in_s
FROM holdfast_participants WHERE does = 'waits';
CREATE VIEW holdfast_latches AS
SELECT name, json_extract(record, '$[2]') AS count, json_extract(record, '$[3]') AS remaining,
       json_array_length(record, '$[6]') AS waiters
FROM holdfast_locks
WHERE CASE WHEN json_valid(record) THEN json_extract(record, '$[1]') END = 'latch';
)sql";

// After a boot: names lose their holders and waiters and keep their last fence. Latches keep their
// count and, by the wall clock, the time they have left (at most 31 days, in case that clock is
// wrong). Limiters keep what was used, and get the tokens that came back meanwhile (a damaged
// limiter stays unchanged). ?1 is the shift from the old boot's time to the new one's, ?2 the new
// boot's now. A record longer than ?3 is not holdfast's.
constexpr const char* strike_out_the_dead = R"sql(
UPDATE holdfast_locks SET record = CASE json_extract(record, '$[1]')
  WHEN 'latch' THEN json_set(record,
    '$[4]', max(?2, min(?2 + 2678400000000, json_extract(record, '$[4]') + ?1)),
    '$[5]', json('[]'), '$[6]', json('[]'))
  WHEN 'rate_limiter' THEN CASE
    WHEN EXISTS (SELECT 1 FROM json_each(record, '$[6]') WHERE type <> 'array') THEN record
    ELSE json_set(record,
      '$[6]', (SELECT json_group_array(json(json_replace(value,
        '$[7]', min(?2, json_extract(value, '$[7]') + ?1),
        '$[8]', max(1, min(?2 + 2678400000000, json_extract(value, '$[8]') + ?1)))))
        FROM json_each(record, '$[6]')),
      '$[7]', json('[]')) END
  ELSE json_set(record, '$[2]', 0, '$[4]', json('[]'), '$[5]', json('[]')) END
WHERE CASE WHEN length(record) <= ?3 AND json_valid(record)
           THEN json_extract(record, '$[0]') END = 1
)sql";

constexpr const char* remember_boot =
    "INSERT OR REPLACE INTO holdfast_meta VALUES ('boot_id', ?1), ('wall_minus_boot_us', ?2)";

constexpr const char* setting_up = "setting up the database for this boot of the machine";

struct marks {
  std::int64_t application = 0;
  std::int64_t version = 0;
  std::int64_t tables = 0;
};

// In one snapshot: another process may be creating the file.
result<marks> read_marks(connection& db, const std::string& tried) {
  if (auto begun = db.execute("BEGIN", tried); !begun) return begun.error();
  const auto application = db.ask("PRAGMA application_id", tried);
  const auto version = db.ask("PRAGMA user_version", tried);
  const auto count = db.ask("SELECT count(*) FROM sqlite_schema", tried);
  (void)db.execute("COMMIT", tried);
  for (const auto* each : {&application, &version, &count}) {
    if (!*each) return each->error();
  }
  return marks{*application, *version, *count};
}

failure of_somebody_else(const std::string& file) {
  return {errc::foreign_data, file +
                                  " is the database of another program. It was left as it is; "
                                  "give locks a file of their own"};
}

failure newer(const std::string& file, std::int64_t version) {
  return {errc::newer_format, file + " has format " + std::to_string(version) +
                                  ", written by a newer holdfast; this " + "one knows format " +
                                  std::to_string(format_version) +
                                  ". It was left as it is; use that holdfast, or another file"};
}

status fill(connection& db, const std::string& tried) {
  const std::string stamp = "PRAGMA application_id = " + std::to_string(application_id) +
                            "; PRAGMA user_version = " + std::to_string(format_version);
  for (const char* sql : {tables, views, stamp.c_str()}) {
    if (auto made = db.execute(sql, tried); !made) return made;
  }
  return done{};
}

struct boot_note {
  std::string boot_id;
  std::int64_t wall_minus_boot_us = 0;
};

std::int64_t wall_minus_boot(const moment& now) noexcept { return now.wall_at - now.now_at; }

result<boot_note> read_boot_note(connection& db) {
  auto boot = db.ask_text("SELECT value FROM holdfast_meta WHERE key = 'boot_id'", setting_up);
  if (!boot) return boot.error();
  const auto offset =
      db.ask("SELECT value FROM holdfast_meta WHERE key = 'wall_minus_boot_us'", setting_up);
  if (!offset) return offset.error();
  return boot_note{*boot, *offset};
}

status run_with(connection& db, const char* sql, const char* tried, const auto& bind_values) {
  const auto prepared = db.prepare(sql, tried);
  if (!prepared) return prepared.error();
  bind_values(prepared->get());
  const int code = run(prepared->get());
  if (code != SQLITE_OK) return explain(db.get(), code, tried);
  return done{};
}

status begin_boot(connection& db, const boot_note& before, const boot_note& now) {
  if (before.boot_id != now.boot_id && !before.boot_id.empty()) {
    const auto struck = run_with(db, strike_out_the_dead, setting_up, [&](sqlite3_stmt* s) {
      sqlite3_bind_int64(s, 1, before.wall_minus_boot_us - now.wall_minus_boot_us);
      sqlite3_bind_int64(s, 2, read_moment().now_at);
      sqlite3_bind_int64(s, 3, sql::longest_read);
    });
    if (!struck) return struck;
  }
  return run_with(db, remember_boot, setting_up, [&](sqlite3_stmt* s) {
    bind_text(s, 1, now.boot_id);
    sqlite3_bind_int64(s, 2, now.wall_minus_boot_us);
  });
}

// The offset for the views may be wrong by up to a second: correcting less is not worth a write at
// opening.
bool is_current(const boot_note& written, const boot_note& now) noexcept {
  return written.boot_id == now.boot_id &&
         std::abs(written.wall_minus_boot_us - now.wall_minus_boot_us) < 1'000'000;
}

// Returns an entry without a record if the row no longer exists; nothing if it cannot be read.
std::optional<state_store::entry> read_entry(sqlite3_stmt* how, std::string_view name) {
  bind_text(how, 1, name);
  state_store::entry one{std::string{name}, {}};
  const int code = sqlite3_step(how);
  if (code == SQLITE_ROW) one.record = text_column(how, 0);
  if (code == SQLITE_TOOBIG) one.record = sql::unread_record;
  const bool read = code == SQLITE_ROW || code == SQLITE_DONE || code == SQLITE_TOOBIG;
  sqlite3_reset(how);
  return read ? std::optional(std::move(one)) : std::nullopt;
}

// Reads one record at a time: a record that is too long to read ends its own statement, and hides
// no other name.
result<std::vector<state_store::entry>> read_entries(connection& db, sqlite3_stmt* listing,
                                                     const std::string& tried) {
  const auto reading = db.prepare("SELECT record FROM holdfast_locks WHERE name = ?1", tried);
  if (!reading) return reading.error();
  std::vector<state_store::entry> found;
  int code = SQLITE_OK;
  while ((code = sqlite3_step(listing)) == SQLITE_ROW) {
    auto one = read_entry(reading->get(), text_column(listing, 0));
    if (!one) return explain_reading(db.get(), sqlite3_errcode(db.get()), tried);
    found.push_back(std::move(*one));
  }
  if (code != SQLITE_DONE) return explain_reading(db.get(), code, tried);
  return found;
}

}  // namespace

const char* const remove_free_sql = R"sql(
DELETE FROM holdfast_locks WHERE name = ?1 AND (record = '' OR
  CASE WHEN json_valid(record) THEN json_extract(record, '$[0]') = 1 AND
                                    json_extract(record, '$[1]') NOT IN
                                      ('election', 'latch', 'rate_limiter') AND
                                    json_extract(record, '$[2]') = 0 END)
RETURNING CASE WHEN record = '' THEN 0 ELSE json_extract(record, '$[3]') + 1 END
)sql";

void bound_records(connection& db) noexcept {
  sqlite3_limit(db.get(), SQLITE_LIMIT_LENGTH, static_cast<int>(sql::longest_read));
}

result<std::vector<state_store::entry>> entries_behind(connection& db, const std::string& file,
                                                       std::string_view name, std::size_t most) {
  const std::string tried = "looking for names in " + file + " that nobody uses";
  const auto listing =
      db.prepare("SELECT name FROM holdfast_locks WHERE name > ?1 ORDER BY name LIMIT ?2", tried);
  if (!listing) return listing.error();
  bind_text(listing->get(), 1, name);
  sqlite3_bind_int64(listing->get(), 2, static_cast<std::int64_t>(most));
  return read_entries(db, listing->get(), tried);
}

result<std::vector<state_store::entry>> entries_of(
    connection& db, const std::string& file,
    const std::function<void(std::string_view name)>& on_free) {
  const std::string tried = "listing the names in " + file;
  const auto listing = db.prepare("SELECT name FROM holdfast_locks ORDER BY name", tried);
  if (!listing) return listing.error();
  auto found = read_entries(db, listing->get(), tried);
  if (!found) return found;
  for (const auto& one : *found) {
    if (sql::is_free(one.record)) on_free(one.name);
  }
  std::erase_if(*found, [](const auto& one) { return one.record.empty(); });
  return found;
}

status raise_fence_floor(connection& db, std::int64_t floor) {
  constexpr const char* sql =
      "UPDATE holdfast_meta SET value = max(value, ?1) WHERE key = 'fence_floor' AND value < ?1";
  return run_with(db, sql, "keeping the greatest fence",
                  [&](sqlite3_stmt* s) { sqlite3_bind_int64(s, 1, floor); });
}

result<ownership> whose(connection& db, const std::string& file) {
  const auto found = read_marks(db, "reading " + file);
  if (!found) return found.error();
  if (found->application == 0 && found->version == 0 && found->tables == 0) {
    return ownership::nobodys;
  }
  if (found->application != application_id) return of_somebody_else(file);
  if (found->version > format_version) return newer(file, found->version);
  if (found->version < format_version) return of_somebody_else(file);
  return ownership::ours;
}

status make_tables(connection& db, const std::string& file) {
  const std::string tried = "making the tables of " + file;
  // 2 KiB instead of 4: a commit writes half as much to the log. The usual records are short, and a
  // dozen waiters still fit. Only a file without content accepts the page size.
  if (auto sized = db.execute("PRAGMA page_size = 2048; PRAGMA journal_mode = WAL", tried);
      !sized) {
    return sized;
  }
  writing transaction{db};
  if (auto begun = transaction.begin(tried); !begun) return begun;
  const auto count = db.ask("SELECT count(*) FROM sqlite_schema", tried);
  if (!count) return count.error();
  if (*count != 0) return done{};
  if (auto filled = fill(db, tried); !filled) return filled;
  return transaction.commit(tried);
}

status settle_in(connection& db, const std::string& boot_id) {
  const boot_note now{boot_id, wall_minus_boot(read_moment())};
  const auto seen = read_boot_note(db);
  if (!seen) return seen.error();
  if (is_current(*seen, now)) return done{};
  writing transaction{db};
  if (auto begun = transaction.begin(setting_up); !begun) return begun;
  const auto before = read_boot_note(db);  // read again, now that no other process can change it
  if (!before) return before.error();
  if (auto begun = begin_boot(db, *before, now); !begun) return begun;
  return transaction.commit(setting_up);
}

}  // namespace holdfast::store::sqlite
