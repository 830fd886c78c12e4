#include "store/sqlite/reader.hpp"
#include "store/sql/record_bound.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <holdfast/store/queue_inbox.hpp>
#include <mutex>
#include <utility>

#include "store/sqlite/connection.hpp"
#include "store/sqlite/database_path.hpp"
#include "store/sqlite/explain.hpp"
#include "store/sqlite/moment.hpp"
#include "store/sqlite/peer.hpp"
#include "store/sqlite/schema.hpp"

namespace holdfast::store::sqlite {
namespace {

constexpr int between_attempts_ms = 1;

bool has_log(const std::string& file) noexcept {
  struct stat found{};
  return ::lstat((file + "-wal").c_str(), &found) == 0;
}

/// A copy in memory, where the holders and waiters of an earlier boot can be removed as at the
/// first opening.
class snapshot {
 public:
  /// `patience`: how long to wait for other processes that have the file for themselves, or open
  /// and close it.
  status read(const std::string& file, std::chrono::milliseconds patience) {
    if (auto made = copy_.open(":memory:"); !made) return made;
    const auto until = std::chrono::steady_clock::now() + patience;
    do {
      bool steady = false;
      if (auto taken = take(file, steady); !taken) return taken;
      if (steady) return settle(file);
      sqlite3_sleep(between_attempts_ms);
    } while (std::chrono::steady_clock::now() < until);
    return failure{errc::unavailable,
                   file +
                       " was opened, closed or locked by other programs during each attempt to "
                       "read it; try again, or raise busy_timeout"};
  }
  connection& db() noexcept { return copy_; }

 private:
  // If there is no log, no process has the file open, and SQLite could not create a log here: the
  // file at rest is read without a lock. keep_log() keeps a log from being removed meanwhile. Not
  // steady: a process has opened the file meanwhile, and may have written to it, as its log shows.
  status take(const std::string& file, bool& steady) {
    connection keeper, with_log;
    if (auto opened = keeper.open_to_read(file, true); !opened) return opened;
    if (!keeper.keep_log()) return done{};
    const bool at_rest = !has_log(file);
    if (!at_rest) {
      if (auto opened = with_log.open_to_read(file, false); !opened) return opened;
    }
    connection& from = at_rest ? keeper : with_log;
    sqlite3_backup* const all = sqlite3_backup_init(copy_.get(), "main", from.get(), "main");
    if (all != nullptr) sqlite3_backup_step(all, -1);
    const int code = all != nullptr ? sqlite3_backup_finish(all) : sqlite3_errcode(copy_.get());
    steady = at_rest ? !has_log(file) : (code & 0xff) != SQLITE_BUSY;
    if (steady && code != SQLITE_OK) return explain_reading(from.get(), code, "reading " + file);
    return done{};
  }
  status settle(const std::string& file) {
    const auto owner = whose(copy_, file);
    if (!owner) return owner.error();
    if (*owner == ownership::nobodys) return make_tables(copy_, file);
    const auto boot = boot_id();
    if (!boot) return boot.error();
    auto settled = settle_in(copy_, *boot);
    bound_records(copy_);
    return settled;
  }

  connection copy_;
};

class reading_store final : public state_store {
 public:
  reading_store(sqlite_options options, std::string file, const peer& self)
      : options_(std::move(options)),
        file_(std::move(file)),
        self_(self),
        inbox_("", *options_.clock) {}

  const capabilities& can() const noexcept override { return can_; }
  const std::string& url() const noexcept override { return options_.url; }

  status transact(std::string_view name, transition& change) override {
    snapshot now;
    if (auto read = now.read(file_, options_.busy_timeout); !read) return read;
    const auto asked =
        now.db().prepare("SELECT record FROM holdfast_locks WHERE name = ?1", "reading " + file_);
    if (!asked) return asked.error();
    bind_text(asked->get(), 1, name);
    const int code = sqlite3_step(asked->get());
    if (code == SQLITE_TOOBIG) return sql::record_too_long();
    if (code != SQLITE_ROW && code != SQLITE_DONE)
      return explain_reading(now.db().get(), code, "reading " + file_);
    const std::string record{code == SQLITE_ROW ? text_column(asked->get(), 0)
                                                : std::string_view{}};
    if (change.apply(record, read_moment()) == nullptr) return done{};
    return failure{errc::read_only,
                   file_ +
                       " was opened with access=read, and this call would change a record: open "
                       "it without access=read"};
  }
  result<std::vector<entry>> entries() override {
    snapshot now;
    if (auto read = now.read(file_, options_.busy_timeout); !read) return read.error();
    return entries_of(now.db(), file_, [](std::string_view) {});
  }
  result<moment> time() override { return read_moment(); }
  bool departed(std::string_view who) override {
    const auto identity = parse_peer(who);
    return identity && sqlite::departed(*identity, self_);
  }
  bool tell(const notification&) override { return true; }
  store::inbox& inbox() noexcept override { return inbox_; }

 private:
  static constexpr capabilities can_{.sees_death = true};
  const sqlite_options options_;
  const std::string file_;
  const peer self_;
  queue_inbox inbox_;
};

failure no_database(const std::string& file) {
  return {errc::unavailable,
          "there is no database at " + file +
              ": correct the path; or, if no program has taken a lock there yet, take one "
              "(holdfast run NAME -- true), which makes the file"};
}

}  // namespace

result<std::unique_ptr<state_store>> open_to_read(sqlite_options options) {
  auto file = locate(options.path, options.network == "allow");
  if (!file) return file.error();
  if (::access(file->c_str(), F_OK) != 0 && errno == ENOENT) return no_database(*file);
  snapshot first;
  if (auto read = first.read(*file, options.busy_timeout); !read) return read.error();
  const auto self = this_session();
  if (!self) return self.error();
  return std::unique_ptr<state_store>{
      std::make_unique<reading_store>(std::move(options), std::move(*file), *self)};
}

}  // namespace holdfast::store::sqlite
