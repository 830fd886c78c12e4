#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tool/options.hpp"
#include "tool/screen.hpp"
#include "tool/survey/snapshot.hpp"

namespace holdfast::tool {

/// A key's request that the view cannot carry out itself.
struct top_request {
  enum class what { nothing, quit, suspend, unlock } kind = what::nothing;
  std::string name{};                 ///< unlock
  std::vector<std::string> owners{};  ///< unlock: only the holders that were shown
};

/// The table of `top`: what it shows of a store, and how keys change that. Independent of the
/// terminal.
class top_view {
 public:
  top_view(std::string store, name_choice which, bool color)
      : store_(std::move(store)), which_(std::move(which)), color_(color) {}

  /// Sets the present state. The selected name stays selected while it exists. While the view is
  /// paused, only the store's trouble changes.
  void update(snapshot s);
  /// The result of a request: shown until the next key.
  void say(std::string_view note);
  top_request on_key(const key& k, screen_size size);
  /// As many lines as the screen has rows, none wider.
  std::vector<std::string> lines(screen_size size, std::chrono::system_clock::time_point now);

 private:
  enum class mode { table, filter, confirm, detail, help };

  top_request on_table_key(const key& k, screen_size size);
  top_request on_letter(char letter);
  top_request on_confirm_key(const key& k);
  void on_filter_key(const key& k);
  void edit(std::string& text, const key& k) const;
  void move_to(std::ptrdiff_t row);
  void arrange();
  void ask_to_unlock();
  const listed_name* selected() const;

  std::string headline(std::chrono::system_clock::time_point now) const;
  std::string status_line() const;
  std::string question(std::size_t columns) const;
  std::string bottom_line(std::size_t columns) const;
  std::vector<std::string> body(screen_size size, std::chrono::system_clock::time_point now);
  std::vector<std::string> table_lines(screen_size size, std::chrono::system_clock::time_point now);
  std::vector<std::string> detail_lines(std::chrono::system_clock::time_point now) const;
  std::string emphasized(const std::string& line, const char* how) const;

  const std::string store_;
  name_choice which_;
  const bool color_;
  snapshot state_;
  std::vector<listed_name> shown_;  ///< filtered and sorted
  mode mode_ = mode::table;
  bool paused_ = false;
  bool reversed_ = false;
  std::string filter_;
  std::string typed_;     ///< the answer to a question so far
  std::string selected_;  ///< a name
  std::size_t selected_row_ = 0;
  std::size_t first_row_ = 0;
  std::string said_;
  std::optional<top_request> asked_;
  std::string holders_;  ///< of the lock in the question
};

}  // namespace holdfast::tool
