#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "store/sql/row_link.hpp"

namespace holdfast::store::sql {

/// The rows that this session wrote last, and the server's clock: enough to guess the present rows.
/// A guess decides nothing, because the server compares it. That is true of one server only: all
/// functions get the server's number (row_link::server_number), and do nothing for a server other
/// than that of the newest connection. Thread-safe.
class known_rows {
 public:
  /// The row of a name and the server's time, if both can be guessed.
  std::optional<row> guess(std::string_view name, std::int64_t server);

  /// The row was found with the version `found`, and is now `now`. If the session finds the row as
  /// it left it, or sees it for the first time, it guesses the next time.
  void learn(std::string_view name, std::int64_t found, row now, std::int64_t server);

  /// Called when a connection was made: it may lead to another server, which may have the same
  /// versions of other records. A standby that has taken over lacks the last changes, and counts on
  /// from there. Connections to the former server may still be in use.
  void forget(std::int64_t server) noexcept;

  /// True if half of the time is over for which the server's clock counts as known: the next answer
  /// should include the time again.
  bool clock_ages();

  /// The server's clock showed `now_at` in the answer to a request sent at `sent`.
  void clock_said(std::int64_t now_at, boot_time sent, std::int64_t server);

 private:
  struct entry {
    std::int64_t version = 0;
    std::string record;
    std::int64_t fence_floor = 0;
    bool ours = false;  ///< no other session seems to write it
  };
  std::mutex mutex_;
  std::map<std::string, entry, std::less<>> rows_;
  std::int64_t server_ = 0;
  std::int64_t server_at_ = 0;
  boot_time heard_{};
};

}  // namespace holdfast::store::sql
