#include "tool/log.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

/// The user's input and a store's data may be of any length.
constexpr std::size_t longest_message = 1000;

/// Threads that renew a lease write here: a reader that takes nothing (a pager, a terminal after
/// Ctrl-S, a stopped service manager) loses lines, and the lock is kept.
constexpr std::chrono::milliseconds at_once{0}, patience{100}, patience_for_an_error{1000};

bool environment_says(const char* name) {
  const char* value = std::getenv(name);
  return value && *value;
}

bool is_dumb() {
  const char* term = std::getenv("TERM");
  return term && std::string_view(term) == "dumb";
}

std::string_view name_of(level l) {
  switch (l) {
    case level::detail:
      return "detail";
    case level::warning:
      return "warning";
    case level::error:
      return "error";
  }
  return "error";
}

std::string json_line(level l, std::string_view event, std::string_view text, const fields& more) {
  nlohmann::ordered_json line{{"schema", 1},
                              {"time", rfc3339(std::chrono::system_clock::now())},
                              {"level", name_of(l)},
                              {"event", event},
                              {"message", text}};
  for (const field& f : more)
    std::visit([&](const auto& value) { line[std::string(f.key)] = value; }, f.value);
  return escaped_json(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)) + '\n';
}

std::size_t columns_of_terminal(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return 80;
  return size.ws_col;
}

}  // namespace

bool use_color(color_when when, int fd) {
  if (when != color_when::automatic) return when == color_when::always;
  if (environment_says("NO_COLOR")) return false;
  const char* force = std::getenv("CLICOLOR_FORCE");
  if (force && *force && std::string_view(force) != "0") return true;
  return ::isatty(fd) == 1 && !is_dumb();
}

log::log(const common_options& how, int fd)
    : fd_(fd),
      format_(how.format),
      verbose_(how.verbose),
      color_(use_color(how.color, fd)),
      draws_progress_(how.format == log_format::text && ::isatty(fd) == 1 && !is_dumb()),
      writer_(fd) {}

void log::write(level l, std::string_view event, std::string_view whole, const fields& more) {
  if (l == level::detail && !shows_details()) return;
  const std::string text = whole.size() > longest_message
                               ? shortened(escaped(whole), longest_message)
                               : std::string(whole);
  const std::string line = json() ? json_line(l, event, text, more) : text_line(l, text);
  const std::lock_guard guard{mutex_};
  writer_.write(clearing_locked() + line, l == level::error ? patience_for_an_error : patience);
}

std::string log::text_line(level l, std::string_view text) const {
  std::string who = "holdfast:";
  if (color_ && l != level::detail)
    who = (l == level::error ? "\x1b[31m" : "\x1b[33m") + who + "\x1b[0m";
  return who + ' ' + escaped(text) + '\n';
}

void log::progress(std::string_view line) {
  if (!draws_progress_) return;
  // One column stays free: a line that fills the last one may wrap.
  const std::string fitting = shortened(std::string(line), columns_of_terminal(fd_) - 1);
  const std::lock_guard guard{mutex_};
  writer_.write("\r" + fitting + "\x1b[K", at_once);
  progress_shown_ = true;
}

void log::clear_progress() {
  const std::lock_guard guard{mutex_};
  if (progress_shown_) writer_.write(clearing_locked(), patience);
}

std::string log::clearing_locked() {
  return std::exchange(progress_shown_, false) ? "\r\x1b[K" : "";
}

}  // namespace holdfast::tool
