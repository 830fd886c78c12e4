#include "store/sqlite/store.hpp"

#include <sys/stat.h>
#include <algorithm>
#include <utility>

#include "store/sql/is_free.hpp"
#include "store/sql/record_bound.hpp"
#include "store/sqlite/explain.hpp"
#include "store/sqlite/moment.hpp"
#include "store/sqlite/rights.hpp"
#include "store/sqlite/schema.hpp"

namespace holdfast::store::sqlite {
namespace {

// Each statement that writes is one transaction: SQLite takes the writer lock, finds the row, calls
// the transition (holdfast_decide), and writes the row if there is something to write. In
// measurements this is as fast as a bare BEGIN IMMEDIATE, UPDATE, COMMIT, and no write is ever
// based on an old record. Only a record without a fence needs the floor of all names.
#define DECIDE                                                           \
  "holdfast_decide(record, "                                             \
  "CASE WHEN record = '' OR substr(record, 5, 5) IN ('latch', 'rate_') " \
  "THEN (SELECT value FROM holdfast_meta WHERE key = 'fence_floor') ELSE 0 END)"
#define DECIDE_WITHOUT_A_ROW \
  "holdfast_decide('', (SELECT value FROM holdfast_meta WHERE key = 'fence_floor'))"
constexpr const char* update_sql =
    "UPDATE holdfast_locks SET record = holdfast_next() WHERE name = ?1 AND " DECIDE;
constexpr const char* insert_sql =
    "INSERT INTO holdfast_locks(name, record) SELECT ?1, holdfast_next() "
    "WHERE " DECIDE_WITHOUT_A_ROW " ON CONFLICT DO NOTHING";
// A transition that only asks is applied in these reads, which wait for no writer.
constexpr const char* read_sql = "SELECT " DECIDE " FROM holdfast_locks WHERE name = ?1";
constexpr const char* read_none_sql = "SELECT " DECIDE_WITHOUT_A_ROW " WHERE ?1 <> ''";
#undef DECIDE_WITHOUT_A_ROW
#undef DECIDE

constexpr std::size_t free_rows_kept = 256;
constexpr int races_lost_in_a_row = 16;
constexpr std::chrono::milliseconds patience_at_closing{100};

/// A page size is a multiple of this.
constexpr std::int64_t block = 512;

/// Returns nothing if the file does not exist.
std::optional<std::int64_t> size_of(const std::string& file) {
  struct stat found{};
  if (::stat(file.c_str(), &found) != 0) return std::nullopt;
  return found.st_size;
}

// The sessions of a truncated file would go on with the data in memory and in the log, while new
// sessions find nothing. A deleted file is created again: SQLite does not use the log of another
// file.
status check_whole(const std::string& file) {
  const auto found = size_of(file);
  if (!found || (*found > 0 && *found % block == 0)) return done{};
  const auto size = *found;
  return failure{errc::corrupt,
                 file + " was truncated to " + std::to_string(size) +
                     " bytes while it was in use: its locks are lost. Stop the programs that use "
                     "it, and remove it with its -wal and -shm"};
}

// A file that has no log yet is just being created, or is not holdfast's.
status check_not_truncated(const std::string& file) {
  return size_of(file + "-wal").value_or(0) > 0 ? check_whole(file) : done{};
}

lock_file& self_of(sqlite3_context* context) noexcept {
  return *static_cast<lock_file*>(sqlite3_user_data(context));
}

std::string_view text_of(sqlite3_value* value) noexcept {
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(value));
  return {text, text == nullptr ? 0 : static_cast<std::size_t>(sqlite3_value_bytes(value))};
}

}  // namespace

lock_file::lock_file(sqlite_options options) : options_(std::move(options)) {}

// ---- opening and closing

status lock_file::open() {
  abandon_what_was_inherited();
  const std::lock_guard lock{mutex()};
  auto found = locate(options_.path, options_.network == "allow");
  if (!found) return found.error();
  file_ = std::move(*found);
  const auto self = this_session();
  if (!self) return self.error();
  self_ = *self;
  for (const auto part :
       {&lock_file::open_connection, &lock_file::open_beside, &lock_file::set_up_tables,
        &lock_file::prepare_statements, &lock_file::open_inbox}) {
    if (auto opened = (this->*part)(); !opened) return opened;
  }
  return done{};
}

status lock_file::open_connection() {
  if (!options_.group.empty()) {
    if (auto given = give_to_group(file_, options_.group); !given) return given;
  }
  if (auto may = check_rights(file_); !may) return may;
  if (auto whole = check_not_truncated(file_); !whole) return whole;
  if (auto opened = db_.open(file_); !opened) return opened;
  // A trigger that another program put into the file could undo a change, and SQLite would still
  // report it: two would hold one lock.
  sqlite3_db_config(db_.get(), SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  // The other half of busy_timeout is for the writer queue.
  sqlite3_busy_timeout(db_.get(), static_cast<int>(options_.busy_timeout.count() / 2));
  return db_.execute(("PRAGMA synchronous = " + options_.synchronous).c_str(), "opening " + file_);
}

// Creates nothing beside a file of another program.
status lock_file::open_beside() {
  if (auto trusted = check_not_planted(file_); !trusted) return trusted;
  if (const auto owner = whose(db_, file_); !owner) return owner.error();
  auto beside = sidecar::open(file_);
  if (!beside) return beside.error();
  beside_ = std::move(*beside);
  auto door = writer_queue::open(beside_, to_string(self_) + ".draft");
  if (!door) return door.error();
  door_.emplace(std::move(*door));
  return done{};
}

status lock_file::set_up_tables() {
  const auto turn = door_->enter(options_.busy_timeout / 2);
  auto owner = whose(db_, file_);
  if (owner && *owner == ownership::nobodys) {
    if (auto made = make_tables(db_, file_); !made) return made;
    owner = whose(db_, file_);
  }
  if (!owner) return owner.error();
  const auto mode = db_.ask_text("PRAGMA journal_mode = WAL", "opening " + file_);
  if (!mode) return mode.error();
  if (*mode != "wal") {
    return failure{errc::unsupported, "SQLite cannot keep a write-ahead log beside " + file_ +
                                          "; use a local file system"};
  }
  const auto boot = boot_id();
  if (!boot) return boot.error();
  return settle_in(db_, *boot);
}

status lock_file::add_functions() {
  // A trigger or a view that another program put into the file must not call these functions.
  constexpr int how = SQLITE_UTF8 | SQLITE_DIRECTONLY;
  struct function {
    const char* name;
    int arguments;
    void (*body)(sqlite3_context*, int, sqlite3_value**);
  };
  for (const auto& [name, arguments, body] :
       {function{"holdfast_decide", 2, &decide}, function{"holdfast_next", 0, &next_record}}) {
    const int code = sqlite3_create_function_v2(db_.get(), name, arguments, how, this, body,
                                                nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) return explain(db_.get(), code, "opening " + file_);
  }
  return done{};
}

status lock_file::prepare_statements() {
  bound_records(db_);
  if (auto added = add_functions(); !added) return added;
  for (const auto& [into, sql] : {std::pair{&update_, update_sql},
                                  {&insert_, insert_sql},
                                  {&read_, read_sql},
                                  {&read_none_, read_none_sql},
                                  {&remove_, remove_free_sql}}) {
    auto prepared = db_.prepare(sql, "opening " + file_);
    if (!prepared) return prepared.error();
    *into = std::move(*prepared);
  }
  return done{};
}

status lock_file::open_inbox() {
  remove_inboxes_of_the_dead(beside_, self_);
  holdfast::clock& time = *options_.clock;
  auto inbox = fifo_inbox::open(beside_, self_, *this, time);
  if (!inbox) return inbox.error();
  inbox_ = std::move(*inbox);
  return done{};
}

lock_file::~lock_file() {
  const std::lock_guard lock{mutex()};
  if (inbox_ != nullptr && !free_.empty()) {
    sqlite3_busy_timeout(db_.get(), static_cast<int>(patience_at_closing.count()));
    const auto turn = door_->enter(patience_at_closing);
    sweep();
  }
  inbox_.reset();
  door_.reset();
  finalize();
  db_.close();
  retire();
}

void lock_file::abandon() noexcept {
  if (inbox_ != nullptr) inbox_->abandon();
  door_.reset();
  finalize();
  db_.abandon();
}

void lock_file::finalize() noexcept {
  update_.reset();
  insert_.reset();
  read_.reset();
  read_none_.reset();
  remove_.reset();
}

// ---- one operation

status lock_file::transact(std::string_view name, transition& change) {
  const std::lock_guard lock{mutex()};
  if (change.only_asks()) {
    const auto answered = asked(name, change);
    if (!answered) return answered.error();
    if (*answered) return done{};
  }
  const auto turn = door_->enter(options_.busy_timeout / 2);
  if (auto there = check_still_there(); !there) return there;
  auto outcome = step(name, change);
  sweep_if_many();
  return outcome;
}

// Applies a transition that only asks, in a read. Returns false if there is something to write. All
// participants of a barrier ask at the same time: the writer queue would admit them one after the
// other, each woken by the one before it.
result<bool> lock_file::asked(std::string_view name, transition& change) {
  if (auto there = check_still_there(); !there) return there.error();
  for (auto* const how : {read_.get(), read_none_.get()}) {
    if (auto tried = try_step(how, name, change, "reading the record"); !tried)
      return tried.error();
    if (current_.row_seen) break;
  }
  if (current_.stays_free) note_free(name);
  return current_.next == nullptr;
}

// The same for several questions. If one of them fails, or has to write, all are decided anew, in
// the transaction.
bool lock_file::all_asked(std::span<const state_store::step> steps) {
  return std::all_of(steps.begin(), steps.end(),
                     [](const auto& one) { return one.change->only_asks(); }) &&
         std::all_of(steps.begin(), steps.end(), [this](const auto& one) {
           const auto answered = asked(one.name, *one.change);
           return answered && *answered;
         });
}

// This session could still write to a file that was deleted or replaced, but no new session would
// read it.
status lock_file::check_still_there() {
  const std::int64_t now = read_clock_us(CLOCK_BOOTTIME);
  if (now - looked_at_path_ < options_.look_at_path_every.count()) return done{};
  int moved = 0;
  sqlite3_file_control(db_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  if (moved != 0) {
    return failure{errc::unavailable,
                   file_ +
                       " was deleted, moved or replaced while it was in use; others may be "
                       "using another file now. Put it back, or open a new session"};
  }
  if (auto whole = check_whole(file_); !whole) return whole;
  looked_at_path_ = now;
  return done{};
}

result<store::identity> lock_file::identify() const {
  struct stat found{};
  if (::stat(file_.c_str(), &found) != 0) {
    return failure{errc::unavailable, file_ + " no longer exists"};
  }
  return store::identity{
      "file " + std::to_string(found.st_dev) + ":" + std::to_string(found.st_ino), {}};
}

status lock_file::step(std::string_view name, transition& change) {
  constexpr std::string_view changing = "changing the record";
  for (int attempt = 0; attempt < races_lost_in_a_row; ++attempt) {
    if (auto tried = try_step(update_.get(), name, change, changing); !tried) return tried;
    bool settled = current_.row_seen;
    if (!settled) {
      if (auto tried = try_step(insert_.get(), name, change, changing); !tried) return tried;
      // No change means that another session inserted the row between the two statements.
      settled = current_.next == nullptr || sqlite3_changes(db_.get()) == 1;
    }
    if (!settled) continue;
    if (current_.stays_free || (current_.next != nullptr && sql::is_free(*current_.next))) {
      note_free(name);
    }
    return done{};
  }
  return failure{errc::unavailable, "another program keeps removing the row from " + file_};
}

status lock_file::try_step(sqlite3_stmt* how, std::string_view name, transition& change,
                           std::string_view tried) {
  current_ = {};
  current_.change = &change;
  bind_text(how, 1, name);
  const int code = run(how);
  if (current_.thrown) std::rethrow_exception(std::exchange(current_.thrown, nullptr));
  if (code == SQLITE_TOOBIG) {
    current_.too_long = true;
    return current_.next == nullptr ? sql::record_too_long() : sql::grown_too_long(name);
  }
  if (code != SQLITE_OK) return failed(how, code, tried);
  return done{};
}

void lock_file::decide(sqlite3_context* context, int, sqlite3_value** values) noexcept {
  step_in_progress& now = self_of(context).current_;
  now.row_seen = true;
  const std::string_view record = text_of(values[0]);
  moment at = read_moment();
  at.wall_at = std::max<std::int64_t>(at.wall_at, sqlite3_value_int64(values[1]));
  try {
    now.next = now.change->apply(record, at);
  } catch (...) {  // must not pass through SQLite's frames
    now.thrown = std::current_exception();
  }
  if (now.next != nullptr && *now.next == record) {
    now.stays_free = sql::is_free(record);
    now.next = nullptr;
  }
  sqlite3_result_int(context, now.next != nullptr);
}

// The transition keeps the text until its next call, which comes after this statement.
void lock_file::next_record(sqlite3_context* context, int, sqlite3_value**) noexcept {
  const std::string& text = *self_of(context).current_.next;
  sqlite3_result_text64(context, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

failure lock_file::failed(sqlite3_stmt* how, int code, std::string_view tried) {
  const auto why = sqlite3_stmt_readonly(how) != 0 ? explain_reading : explain;
  return why(db_.get(), code, std::string{tried} + " in " + file_);
}

// ---- several steps, and all entries

std::vector<status> lock_file::transact(std::span<const state_store::step> steps) {
  const std::lock_guard lock{mutex()};
  if (all_asked(steps)) return std::vector<status>(steps.size(), done{});
  const auto turn = door_->enter(options_.busy_timeout / 2);
  if (auto there = check_still_there(); !there) return std::vector<status>(steps.size(), there);
  auto outcomes = step_all(steps);
  if (std::any_of(outcomes.begin(), outcomes.end(), [](const status& s) { return s.ok(); })) {
    sweep_if_many();
  }
  return outcomes;
}

status lock_file::transact_together(std::span<const state_store::step> steps,
                                    const state_store::judge& after) {
  const std::lock_guard lock{mutex()};
  const auto turn = door_->enter(options_.busy_timeout / 2);
  if (auto there = check_still_there(); !there) return there;
  auto outcome = step_together(steps, after);
  if (outcome) sweep_if_many();
  return outcome;
}

status lock_file::step_together(std::span<const state_store::step> steps,
                                const state_store::judge& after) {
  using verdict = state_store::verdict;
  writing transaction{db_};
  if (auto begun = transaction.begin("writing to " + file_); !begun) return begun;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (auto stepped = step(steps[i].name, *steps[i].change); !stepped) return stepped;
    const verdict so = after(i);
    if (so == verdict::undo) return done{};
    if (so == verdict::keep) break;
  }
  return transaction.commit("writing to " + file_);
}

// One transaction: if it fails, none of the steps has happened. A record that is too long fails
// only its own step.
std::vector<status> lock_file::step_all(std::span<const state_store::step> steps) {
  std::vector<status> outcomes;
  outcomes.reserve(steps.size());
  writing transaction{db_};
  auto whole = transaction.begin("writing to " + file_);
  for (std::size_t i = 0; whole && i < steps.size(); ++i) {
    outcomes.push_back(step(steps[i].name, *steps[i].change));
    if (!outcomes.back() && !current_.too_long) whole = outcomes.back();
  }
  if (whole) whole = transaction.commit("writing to " + file_);
  return whole ? outcomes : std::vector<status>(steps.size(), whole);
}

result<std::vector<state_store::entry>> lock_file::entries() {
  const std::lock_guard lock{mutex()};
  if (auto there = check_still_there(); !there) return there.error();
  // These rows were left by a process that was killed.
  return entries_of(db_, file_, [this](std::string_view name) { note_free(name); });
}

result<std::vector<state_store::entry>> lock_file::walk(std::string_view behind, std::size_t most) {
  const std::lock_guard lock{mutex()};
  if (auto there = check_still_there(); !there) return there.error();
  return entries_behind(db_, file_, behind, most);
}

// ---- unused rows

void lock_file::note_free(std::string_view name) {
  if (name == last_free_) return;
  last_free_ = name;
  free_.insert(last_free_);
}

void lock_file::sweep_if_many() noexcept {
  if (free_.size() >= free_rows_kept) sweep();
}

void lock_file::sweep() noexcept {
  try {
    (void)remove_free();
  } catch (const std::bad_alloc&) {
    last_free_.clear();  // rows that could not be removed cost only a little space
  }
  last_free_.clear();
  free_.clear();
}

// Each removed row loses its last fence; the greatest of them remains as a floor for all names.
status lock_file::remove_free() {
  constexpr const char* tried = "removing names that nobody uses";
  writing transaction{db_};
  if (auto begun = transaction.begin(tried); !begun) return begun;
  std::int64_t floor = 0;
  for (const std::string& name : free_) {
    bind_text(remove_.get(), 1, name);
    while (sqlite3_step(remove_.get()) == SQLITE_ROW) {
      floor = std::max<std::int64_t>(floor, sqlite3_column_int64(remove_.get(), 0));
    }
    if (const int code = sqlite3_reset(remove_.get()); code != SQLITE_OK) {
      return failed(remove_.get(), code, tried);
    }
  }
  if (auto raised = raise_fence_floor(db_, floor); !raised) return raised;
  return transaction.commit(tried);
}

}  // namespace holdfast::store::sqlite
