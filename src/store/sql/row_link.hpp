#pragma once

#include <cstdint>
#include <holdfast/clock.hpp>
#include <holdfast/store/state_store.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/sql/record_bound.hpp"

/// What the SQL stores with a server share: how a record changes that many clients want to change.
///
/// A row is replaced only as long as it is the one that was read: by its version, in one statement,
/// with no transaction held open. The session that wrote a row last guesses that nobody else did
/// since, and the same statement tells it whether that is so. If it is overtaken again after a
/// wrong guess, or once without a guess, it takes the row's lock.
namespace holdfast::store::sql {

/// The row of a name as the server has it, and what time it was there.
struct row {
  bool there = false;
  std::int64_t version = 0;
  std::string record{};
  std::int64_t now_at = 0;  ///< microseconds since 1970, on the server's clock
  std::int64_t fence_floor = 0;
  bool too_long = false;  ///< the record was not read (record_bound.hpp)
};

/// What time it was at the server, as it said in an answer that came at `heard`. What is decided
/// until it is used takes nothing off it.
struct server_time {
  std::int64_t now_at = 0;
  boot_time heard{};

  /// At that deadline, or a little before.
  std::int64_t at(boot_time deadline) const {
    return now_at + std::chrono::floor<std::chrono::microseconds>(deadline - heard).count();
  }
};
/// The rows just came; the last one was read last, perhaps after a wait for its lock.
inline server_time time_of(std::span<const row> rows) {
  return {rows.back().now_at, boot_clock::now()};
}

/// What is to replace a row. It is not replaced if it is not the one of that version any more, or
/// if the server's clock is more than 0.5 ms behind what was assumed, or 1.5 ms ahead of it. A row
/// is made only while the floor is not above its first version: a name that was taken, given back
/// and swept meanwhile would begin again with a smaller fence, and with a version that it had
/// before.
struct replacement {
  std::string_view name;
  bool there = false;         ///< there was a row, with …
  std::int64_t version = 0;   ///< … this version; if there was none, what its fence was decided at
  std::string_view record{};  ///< never empty: a row goes only by sweep(), or by unlock()
  std::optional<std::int64_t> assumed_now{};
  /// Not begun after that time of the server: its caller has given up by then.
  std::optional<std::int64_t> until_at{};
  bool asks_time = false;  ///< the answer should say what time it is there, if it can
};

/// What became of it.
struct replaced {
  bool done = false;
  std::int64_t version = 0;  ///< the row's new one
  std::int64_t now_at = 0;   ///< 0: not said
};

/// What a locked row is to be from now on.
struct rewrite {
  std::string_view name;
  std::string_view record{};  ///< empty: remove the row, which lock() has made
};

/// One connection to the server, used by one thread at a time. Each function is one round trip, and
/// one transaction unless it says otherwise; a failure of one statement is a failure of all. An
/// answer is waited for until the deadline.
class row_link {
 public:
  virtual ~row_link() = default;

  /// Whether another call may succeed: false for a connection that broke, or is in an unknown
  /// state.
  virtual bool usable() const noexcept = 0;

  /// Whether the same server answers for as long as it is usable. A pooler may go on with another
  /// one, behind a connection that stays: nothing of the rows can be guessed there.
  virtual bool keeps_its_server() const noexcept { return true; }

  /// Whether the answer to the call that failed last proves that the server did nothing, and will
  /// not. Else that is unknown, but for the codes that was_refused() knows.
  virtual bool did_nothing() const noexcept { return false; }

  virtual result<std::vector<row>> read(std::span<const std::string_view> names,
                                        boot_time deadline) = 0;
  /// In this order. A failure with errc::busy says that another session was faster (a serialization
  /// failure, a deadlock): nothing happened.
  virtual result<std::vector<replaced>> replace(std::span<const replacement> all,
                                                boot_time deadline) = 0;

  /// Begins a transaction with the locks of the names' rows, taken in this order; each is made if
  /// it is not there (its record is then empty). A failure with errc::busy: nothing happened.
  virtual result<std::vector<row>> lock(std::span<const std::string_view> names,
                                        boot_time deadline) = 0;
  /// Ends it: writes and commits, or undoes everything if there is nothing to write. A row that was
  /// made for lock() stays, unless it is removed here. After `until_at` of the server it fails with
  /// errc::timed_out, and undoes everything.
  virtual status unlock(std::span<const rewrite> all, std::int64_t until_at,
                        boot_time deadline) = 0;

  /// Removes the rows of names that nobody uses. The floor is then above all their fences and
  /// versions.
  virtual status sweep(std::span<const std::string> names, boot_time deadline) = 0;
  virtual result<std::vector<state_store::entry>> entries(boot_time deadline) = 0;
  /// So many of them behind that name, in the order of the names.
  virtual result<std::vector<state_store::entry>> entries_behind(std::string_view name,
                                                                 std::size_t most,
                                                                 boot_time deadline) = 0;

  /// What tells these tables from others; empty if they were made before there was such a thing.
  virtual result<std::string> id_of_tables(boot_time) { return std::string(); }
  /// The server's settings, as far as they bear on locks.
  virtual result<store::facts> facts(boot_time) { return store::facts{}; }
};

/// The server said why it did nothing: another session was faster, it takes no writes, the request
/// came after its `until_at`, or something that only this server's link can judge.
inline bool was_refused(const row_link& by, const failure& f) noexcept {
  return f.code == errc::busy || f.code == errc::read_only || f.code == errc::timed_out ||
         by.did_nothing();
}

}  // namespace holdfast::store::sql
