#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <exception>
#include <holdfast/error.hpp>
#include <holdfast/event_log.hpp>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/names.hpp"

namespace holdfast {

namespace {

using seconds = std::chrono::duration<double>;

constexpr std::string_view hex = "0123456789abcdef";

std::string time_of_day() {
  using namespace std::chrono;
  const auto now = system_clock::now().time_since_epoch();
  const std::time_t whole = duration_cast<std::chrono::seconds>(now).count();
  const auto rest = duration_cast<milliseconds>(now).count() % 1000;
  std::tm utc{};
  ::gmtime_r(&whole, &utc);
  std::array<char, 32> text{};
  const auto size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  std::array<char, 16> ms{};
  std::snprintf(ms.data(), ms.size(), ".%03dZ", static_cast<int>(rest));
  return std::string(text.data(), size) + ms.data();
}

std::string in_seconds(std::chrono::nanoseconds d) {
  std::array<char, 64> text{};  // not with snprintf, which writes a comma in some locales
  const auto end = std::to_chars(text.data(), text.data() + text.size(), seconds(d).count(),
                                 std::chars_format::fixed, 6);
  return {text.data(), end.ptr};
}

bool needs_quotes(std::string_view text) noexcept {
  if (text.empty()) return true;
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte <= 0x20 || byte >= 0x7F || c == '"' || c == '=' || c == '\\';
  });
}

struct letter {
  std::uint32_t code;
  std::size_t bytes;
};

/// In valid UTF-8. Codes beyond four digits, which need no escape, are not told apart.
letter letter_at(std::string_view utf8, std::size_t at) noexcept {
  const auto first = static_cast<unsigned char>(utf8[at]);
  if (first < 0x80) return {first, 1};
  if (first >= 0xF0) return {0x10000, 4};
  const std::size_t bytes = first >= 0xE0 ? 3 : 2;
  std::uint32_t code = first & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i)
    code = code << 6U | (static_cast<unsigned char>(utf8[at + i]) & 0x3FU);
  return {code, bytes};
}

/// What ends a line, moves text that follows, or is not seen: control characters, marks of the
/// direction, letters without a width.
bool moves_text(std::uint32_t code) noexcept {
  constexpr std::array<std::pair<std::uint32_t, std::uint32_t>, 7> ranges{{{0x0, 0x1F},
                                                                           {0x7F, 0x9F},
                                                                           {0x61C, 0x61C},
                                                                           {0x200B, 0x200F},
                                                                           {0x2028, 0x202E},
                                                                           {0x2060, 0x206F},
                                                                           {0xFEFF, 0xFEFF}}};
  return std::any_of(ranges.begin(), ranges.end(),
                     [code](const auto& r) { return r.first <= code && code <= r.second; });
}

/// In quotes, with JSON's escapes. In a text that is not UTF-8 each byte is escaped as a character
/// of its own.
std::string quoted(std::string_view text) {
  const bool utf8 = base::is_utf8(text);
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    const letter next = utf8 ? letter_at(text, i) : letter{byte, 1};
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (moves_text(next.code) || (byte >= 0x80 && !utf8)) {
      out += "\\u";
      for (const unsigned shift : {12U, 8U, 4U, 0U}) out += hex[next.code >> shift & 15];
    } else {
      out += text.substr(i, next.bytes);
    }
    i += next.bytes;
  }
  return out + '"';
}

/// Builds a line in either form.
class line_maker {
 public:
  explicit line_maker(log_form form) : json_(form == log_form::json) {}

  void text(std::string_view key, std::string_view value) {
    if (value.empty()) return;
    put(key, json_ || needs_quotes(value) ? quoted(value) : std::string(value));
  }
  void number(std::string_view key, std::string value) { put(key, std::move(value)); }
  void span(std::string_view key, std::chrono::nanoseconds d) {
    if (d > std::chrono::nanoseconds::zero()) put(key, in_seconds(d));
  }
  std::string finish() && { return json_ ? line_ + '}' : std::move(line_); }

 private:
  void put(std::string_view key, std::string value) {
    if (json_) {
      line_ += (line_.empty() ? "{\"" : ",\"") + std::string(key) + "\":" + std::move(value);
    } else {
      line_ += (line_.empty() ? "" : " ") + std::string(key) + '=' + std::move(value);
    }
  }
  const bool json_;
  std::string line_;
};

void add_fence(line_maker& to, std::uint64_t fence) {
  // Many JSON readers store a number as a double, which cannot represent a fence.
  if (fence != 0) to.text("fence", std::to_string(fence));
}

std::string line_of(const event& e, log_form form, std::uint64_t dropped) {
  line_maker to(form);
  to.text("time", time_of_day());
  to.text("level", to_string(level_of(e.kind)));
  to.text("event", to_string(e.kind));
  to.text("lock", e.name);
  to.text("kind", e.lock_kind);
  to.text("store", e.store);
  add_fence(to, e.fence);
  to.span("waited", e.waited);
  to.span("held", e.held);
  to.span("margin", e.margin);
  if (e.code) to.text("reason", e.code.message());
  to.text("detail", e.detail);
  if (dropped > 0) to.number("dropped", std::to_string(dropped));
  return std::move(to).finish();
}

/// Limits the rate: `burst` at once, and `per_second` afterwards.
class allowance {
 public:
  allowance(double burst, boot_time now) : left_(burst), at_(now) {}

  /// Returns how many were refused since the last one that was allowed; nothing if this one is
  /// refused.
  std::optional<std::uint64_t> take(const event_log_options& o, boot_time now) {
    left_ = std::min<double>(o.burst, left_ + seconds(now - at_).count() * o.per_second);
    at_ = now;
    if (left_ < 1) return ++refused_, std::nullopt;
    left_ -= 1;
    return std::exchange(refused_, 0);
  }

 private:
  double left_;
  boot_time at_;
  std::uint64_t refused_ = 0;
};

}  // namespace

std::string_view to_string(log_level level) noexcept {
  if (level == log_level::error) return "error";
  return level == log_level::warning ? "warning" : "info";
}

bool is_routine(event_kind kind) noexcept {
  return kind == event_kind::acquired || kind == event_kind::released || kind == event_kind::busy ||
         kind == event_kind::gave_up || kind == event_kind::renewed;
}

log_level level_of(event_kind kind) noexcept {
  if (is_routine(kind)) return log_level::info;
  const bool bad = kind == event_kind::lost || kind == event_kind::deadlock;
  return bad ? log_level::error : log_level::warning;
}

struct event_log::state {
  using line = std::pair<log_level, std::string>;

  explicit state(event_log_options o) : options(std::move(o)) {
    if (options.write) return;
    throw_failure({errc::invalid_argument, "there is nowhere to write to: set options.write", false,
                   "event_log"});
  }
  boot_time now() const { return (options.clock ? *options.clock : real_clock()).now(); }

  /// Returns false if there is nothing to write, or if another thread will write it.
  bool put(const event& what) {
    const std::lock_guard guard{mutex};
    const boot_time when = now();
    auto& rate = allowed.try_emplace(what.kind, options.burst, when).first->second;
    const auto dropped = rate.take(options, when);
    if (!dropped) return false;
    lines.emplace_back(level_of(what.kind), line_of(what, options.form, *dropped));
    return !std::exchange(writing, true);
  }

  /// The next line to write. If there is none, other threads may write from now on.
  std::list<line> next() noexcept {
    const std::lock_guard guard{mutex};
    std::list<line> one;
    writing = !lines.empty();
    if (writing) one.splice(one.end(), lines, lines.begin());
    return one;
  }

  event_log_options options;
  std::mutex mutex;
  std::map<event_kind, allowance> allowed;
  std::list<line> lines;
  bool writing = false;
};

event_log::event_log(event_log_options options)
    : state_(std::make_unique<state>(std::move(options))) {}
event_log::~event_log() = default;

// One thread at a time writes, without the mutex: the function that it calls may cause another
// event, and the writing thread writes that as well.
void event_log::on_event(const event& what) {
  auto& s = *state_;
  if (is_routine(what.kind) && !s.options.routine) return;
  if (!s.put(what)) return;
  std::exception_ptr thrown;
  for (auto one = s.next(); !one.empty(); one = s.next()) {
    try {
      s.options.write(one.front().first, one.front().second);
    } catch (...) {
      thrown = std::current_exception();
    }
  }
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace holdfast
