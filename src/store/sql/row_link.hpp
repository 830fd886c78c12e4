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

/// The common part of the SQL stores with a server: how to change a record that many clients want
/// to change.
///
/// A row is replaced only if it is still the one that was read: by its version, in one statement,
/// without an open transaction. The session that wrote a row last guesses that no other session has
/// written since, and the same statement tells it whether that is true. A session that is overtaken
/// again after a wrong guess, or once without a guess, locks the row.
namespace holdfast::store::sql {

/// The row of a name as the server has it, and the server's time.
struct row {
  bool there = false;
  std::int64_t version = 0;
  std::string record{};
  std::int64_t now_at = 0;  ///< microseconds since 1970, on the server's clock
  std::int64_t fence_floor = 0;
  bool too_long = false;  ///< the record was not read (record_bound.hpp)
};

/// The server's time in an answer that arrived at `heard`. It does not age until it is used: at()
/// adds the time that has passed since.
struct server_time {
  std::int64_t now_at = 0;
  boot_time heard{};

  /// The server's time at that deadline, or a little before.
  std::int64_t at(boot_time deadline) const {
    return now_at + std::chrono::floor<std::chrono::microseconds>(deadline - heard).count();
  }
};
/// To be called when the rows have just arrived. The last row was read last, perhaps after a wait
/// for its lock.
inline server_time time_of(std::span<const row> rows) {
  return {rows.back().now_at, boot_clock::now()};
}

/// The replacement for a row. The server does not apply it if the row no longer has that version,
/// or if its clock is more than 0.5 ms behind the assumed time, or 1.5 ms ahead of it. A row is
/// created only while the floor is not above its first version: otherwise a name that was taken,
/// released and swept meanwhile would begin again with a smaller fence, and with a version that it
/// had before.
struct replacement {
  std::string_view name;
  bool there = false;  ///< whether there was a row
  /// The version of that row; if there was none, the version at which the fence was decided.
  std::int64_t version = 0;
  std::string_view record{};  ///< never empty: only sweep() and unlock() remove rows
  std::optional<std::int64_t> assumed_now{};
  /// The server does not begin later than this time of its clock: the caller has given up by then.
  std::optional<std::int64_t> until_at{};
  bool asks_time = false;  ///< asks for the server's time in the answer, if possible
};

/// The outcome of a replacement.
struct replaced {
  bool done = false;
  std::int64_t version = 0;  ///< the row's new version
  std::int64_t now_at = 0;   ///< 0: not returned
};

/// The new content of a locked row.
struct rewrite {
  std::string_view name;
  std::string_view record{};  ///< empty: remove the row, which lock() has created
};

/// One connection to the server, used by one thread at a time. Each function is one round trip and
/// one transaction unless noted otherwise; if one statement fails, all of them have failed. It
/// waits for an answer until the deadline.
class row_link {
 public:
  virtual ~row_link() = default;

  /// Whether another call may succeed: false for a connection that broke, or whose state is
  /// unknown.
  virtual bool usable() const noexcept = 0;

  /// Whether the same server answers as long as the connection is usable. Behind a connection to a
  /// pooler the server may change, so its rows cannot be guessed.
  virtual bool keeps_its_server() const noexcept { return true; }

  /// The server behind the connection: another server has another number.
  virtual std::int64_t server_number() const noexcept { return 0; }

  /// Whether the answer to the last failed call proves that the server did nothing, and will do
  /// nothing. Otherwise that is unknown, except for the codes that was_refused() knows.
  virtual bool did_nothing() const noexcept { return false; }

  virtual result<std::vector<row>> read(std::span<const std::string_view> names,
                                        boot_time deadline) = 0;
  /// Applies the replacements in this order. A failure with errc::busy means that another session
  /// was faster (a serialization failure, a deadlock): nothing happened.
  virtual result<std::vector<replaced>> replace(std::span<const replacement> all,
                                                boot_time deadline) = 0;

  /// Begins a transaction that locks the names' rows in this order. Creates each missing row (its
  /// record is then empty). After a failure with errc::busy nothing happened.
  virtual result<std::vector<row>> lock(std::span<const std::string_view> names,
                                        boot_time deadline) = 0;
  /// Ends the transaction: writes and commits, or rolls back if there is nothing to write. A row
  /// that was created for lock() stays unless it is removed here. After `until_at` of the server's
  /// time it fails with errc::timed_out, and rolls back.
  virtual status unlock(std::span<const rewrite> all, std::int64_t until_at,
                        boot_time deadline) = 0;

  /// Removes the rows of unused names. The floor is then above all their fences and versions.
  virtual status sweep(std::span<const std::string> names, boot_time deadline) = 0;
  virtual result<std::vector<state_store::entry>> entries(boot_time deadline) = 0;
  /// At most `most` entries of the names behind `name`, in the order of the names.
  virtual result<std::vector<state_store::entry>> entries_behind(std::string_view name,
                                                                 std::size_t most,
                                                                 boot_time deadline) = 0;

  /// Identifies these tables; empty if they were created before there was an identity.
  virtual result<std::string> id_of_tables(boot_time) { return std::string(); }
  /// The server's settings that concern locks.
  virtual result<store::facts> facts(boot_time) { return store::facts{}; }
};

/// True if the server told why it did nothing: another session was faster, the server takes no
/// writes, the request came after its `until_at`, or a reason that only this server's link can
/// judge.
inline bool was_refused(const row_link& by, const failure& f) noexcept {
  return f.code == errc::busy || f.code == errc::read_only || f.code == errc::timed_out ||
         by.did_nothing();
}

}  // namespace holdfast::store::sql
