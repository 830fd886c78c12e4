#pragma once

#include <chrono>
#include <cstdint>
#include <holdfast/clock.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tool/survey/history.hpp"
#include "tool/survey/snapshot.hpp"

namespace holdfast::tool {

/// What is known about one store: the scanner writes, the viewers read. Each change has a number,
/// so that a slow or new viewer gets the rows that changed since, each once and in its present
/// state, and nothing else has to be kept for it. Thread-safe.
class board {
 public:
  /// `index` tells the stores of one server apart.
  board(std::size_t index, std::string url) : index_(index), url_(std::move(url)) {}
  const std::string& url() const noexcept { return url_; }

  /// Stores the result of one query. True if viewers see a change.
  bool put(listed_name found, std::chrono::system_clock::time_point now);
  /// All names in use at that time are known here.
  void listed(std::chrono::system_clock::time_point at);
  /// Every name has been queried: from now on, names that appear are changes.
  void settle();
  void set_health(store_health health);
  store_health health() const;

  /// A piece of the changes, as events for a browser.
  struct piece {
    std::uint64_t upto = 0;
    std::shared_ptr<const std::string> text{};
  };
  /// A viewer's position: the last change it has seen, and the latest one when it began.
  struct cursor {
    std::uint64_t number = 0;
    std::uint64_t began = 0;
  };
  /// The changes after the viewer's position, of all rows; moves the position. A viewer that was
  /// away for too long is told to forget its rows and begins anew.
  std::shared_ptr<const std::string> since(cursor& viewer);  // null: nothing has changed

  std::chrono::system_clock::time_point listed_at() const;
  /// Changes after each change that viewers see.
  std::uint64_t version() const;

  snapshot take(std::chrono::system_clock::time_point now) const;
  struct seen {
    listed_name what{};
    std::chrono::system_clock::time_point at{};
  };
  std::optional<seen> find(std::string_view lock, std::chrono::system_clock::time_point now) const;
  history::of_name history_of(std::string_view lock) const;
  std::vector<std::pair<std::string, std::uint64_t>> busiest(std::size_t most) const;

  /// A viewer looks at this name: the scanner queries it more often for some seconds.
  void want(std::string_view lock, boot_time now);
  std::vector<std::string> wanted(boot_time now);

  static constexpr std::size_t max_rows_a_piece = 400;
  static constexpr std::size_t max_gone = 10'000;

 private:
  struct row {
    listed_name name{};
    std::uint64_t number = 0;
    bool gone = false;
    std::chrono::system_clock::time_point seen_at{};
    std::chrono::system_clock::time_point shown_end{};  ///< of the first holder's lease
    std::string json{};  ///< as in list --json; made when the first viewer needs it
  };
  static listed_name aged(const row& r, std::chrono::system_clock::time_point now);
  void note(const row& before, const listed_name& found, std::chrono::system_clock::time_point now);
  void renumber(row& r);
  void forget_old();
  std::string event_of(std::uint64_t& upto) const;
  piece piece_from(std::uint64_t number, bool anew) const;

  const std::size_t index_;
  const std::string url_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, row> rows_;
  std::map<std::uint64_t, row*> changes_;
  std::map<std::uint64_t, row*> gone_;  ///< the rows of names that are not in use any more
  std::uint64_t last_ = 0;
  std::uint64_t forgotten_ = 0;  ///< names that went before this change are not known any more
  std::map<std::string, boot_time, std::less<>> wanted_;
  std::uint64_t cached_from_ = 0;
  bool cached_anew_ = false;
  std::optional<piece> cached_;  ///< many viewers are at the same position
  store_health health_;
  history history_;
  bool settled_ = false;
  std::chrono::system_clock::time_point listed_at_{};
};

}  // namespace holdfast::tool
