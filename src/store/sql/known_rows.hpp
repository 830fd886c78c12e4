#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "store/sql/row_link.hpp"

namespace holdfast::store::sql {

/// The rows that this session wrote last, and the server's clock: enough to guess the present rows.
/// A guess decides nothing, because the server compares it. Thread-safe.
class known_rows {
 public:
  /// The row of a name and the server's time, if both can be guessed.
  std::optional<row> guess(std::string_view name);

  /// The row was found with the version `found`, and is now `now`. If the session finds the row as
  /// it left it, or sees it for the first time, it guesses the next time.
  void learn(std::string_view name, std::int64_t found, row now);

  /// Called when another server may answer from now on, which may have the same versions of other
  /// records: a standby that has taken over lacks the last changes, and counts on from there.
  void forget() noexcept;

  /// True if half of the time is over for which the server's clock counts as known: the next answer
  /// should include the time again.
  bool clock_ages();

  /// The server's clock showed `now_at` in the answer to a request sent at `sent`.
  void clock_said(std::int64_t now_at, boot_time sent);

 private:
  struct entry {
    std::int64_t version = 0;
    std::string record;
    std::int64_t fence_floor = 0;
    bool ours = false;  ///< no other session seems to write it
  };
  std::mutex mutex_;
  std::map<std::string, entry, std::less<>> rows_;
  std::int64_t server_at_ = 0;
  boot_time heard_{};
};

}  // namespace holdfast::store::sql
