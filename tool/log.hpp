#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tool/line_writer.hpp"
#include "tool/options.hpp"

namespace holdfast::tool {

/// A named value of a JSON event.
struct field {
  std::string_view key;
  std::variant<std::string, std::int64_t, double, bool> value;
};
using fields = std::vector<field>;

enum class level { detail, warning, error };

/// Whether escape sequences may be written to `fd`: on a terminal, unless NO_COLOR or TERM=dumb
/// forbid it; --color and CLICOLOR_FORCE decide first.
bool use_color(color_when when, int fd);

/// Messages for people on stderr, or one JSON object a line for programs. Thread-safe. As text,
/// details are written with -v only. A call waits for stderr for a tenth of a second, with an error
/// for a second. A message that comes while an older one is still being written is dropped.
class log {
 public:
  log(const common_options& how, int fd);

  /// Writes at most a thousand columns of the text.
  void write(level l, std::string_view event, std::string_view text, const fields& more = {});
  /// The one line that is redrawn in place; on a terminal only.
  void progress(std::string_view line);
  void clear_progress();

  bool draws_progress() const noexcept { return draws_progress_; }
  bool json() const noexcept { return format_ == log_format::json; }
  bool shows_details() const noexcept { return verbose_ || json(); }

 private:
  /// The text that precedes a message.
  std::string clearing_locked();
  std::string text_line(level l, std::string_view text) const;

  const int fd_;
  const log_format format_;
  const bool verbose_;
  const bool color_;
  const bool draws_progress_;
  std::mutex mutex_;
  bool progress_shown_ = false;
  line_writer writer_;
};

}  // namespace holdfast::tool
