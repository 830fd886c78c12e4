#include "tool/duration.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace holdfast::tool {

namespace {

using std::chrono::nanoseconds;

struct unit {
  std::string_view name;
  double nanoseconds;
};
constexpr std::array<unit, 5> units{
    {{"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}, {"d", 86400e9}}};

// Units that people write by habit, and the proper ones.
constexpr std::array<std::pair<std::string_view, std::string_view>, 16> habits{{{"sec", "s"},
                                                                                {"secs", "s"},
                                                                                {"second", "s"},
                                                                                {"seconds", "s"},
                                                                                {"S", "s"},
                                                                                {"min", "m"},
                                                                                {"mins", "m"},
                                                                                {"minute", "m"},
                                                                                {"minutes", "m"},
                                                                                {"M", "m"},
                                                                                {"hr", "h"},
                                                                                {"hour", "h"},
                                                                                {"hours", "h"},
                                                                                {"H", "h"},
                                                                                {"day", "d"},
                                                                                {"msec", "ms"}}};

constexpr double longest = 9.2e18;  // just under the range of nanoseconds: 292 years

[[noreturn]] void refuse(std::string_view text, std::string_view hint) {
  throw std::invalid_argument("'" + std::string(text) + "' is not a duration; " +
                              std::string(hint));
}

[[noreturn]] void refuse(std::string_view text) {
  refuse(text, "write 500ms, 1.5s, 2m, 1h30m, or a number of seconds");
}

std::string_view take_while(std::string_view& rest, bool (*belongs)(char)) {
  std::size_t n = 0;
  while (n < rest.size() && belongs(rest[n])) ++n;
  const auto taken = rest.substr(0, n);
  rest.remove_prefix(n);
  return taken;
}

bool in_number(char c) { return (c >= '0' && c <= '9') || c == '.'; }
bool in_unit(char c) { return !in_number(c); }

double parse_number(std::string_view text, std::string_view digits) {
  double value = 0;
  const auto [end, error] =
      std::from_chars(digits.begin(), digits.end(), value, std::chars_format::fixed);
  if (error != std::errc{} || end != digits.end()) refuse(text);
  return value;
}

const unit* find_unit(std::string_view name) {
  for (const unit& u : units)
    if (u.name == name) return &u;
  return nullptr;
}

const unit& parse_unit(std::string_view text, std::string_view before, std::string_view name,
                       std::string_view after) {
  if (const unit* u = find_unit(name)) return *u;
  for (const auto& [habit, meant] : habits)
    if (habit == name)
      refuse(text,
             "did you mean " + std::string(before) + std::string(meant) + std::string(after) + "?");
  refuse(text);
}

std::string with_unit(std::int64_t big, const char* big_unit, std::int64_t small,
                      const char* small_unit) {
  std::string out = std::to_string(big) + big_unit;
  if (small != 0) out += std::to_string(small) + small_unit;
  return out;
}

}  // namespace

nanoseconds parse_duration(std::string_view text) {
  if (text.starts_with('-'))
    refuse(text, "it cannot be negative: did you mean " + std::string(text.substr(1)) + "?");
  double sum = 0;
  double last_unit = HUGE_VAL;
  std::string_view rest = text;
  do {
    const auto digits = take_while(rest, in_number);
    const double number = parse_number(text, digits);
    const auto before = text.substr(0, text.size() - rest.size());
    const auto name = take_while(rest, in_unit);
    // Only a whole duration may lack a unit: in 1m30 the unit of the 30 is unclear.
    if (name.empty() && digits.size() != text.size())
      refuse(text, "did you mean " + std::string(text) + "s?");
    const double size = name.empty() ? 1e9 : parse_unit(text, before, name, rest).nanoseconds;
    if (size >= last_unit) refuse(text, "each unit once, the greatest first, as in 1h30m");
    last_unit = size;
    sum += number * size;
  } while (!rest.empty());
  if (!(sum < longest)) refuse(text, "the longest is 100000d");
  return nanoseconds{static_cast<std::int64_t>(std::llround(sum))};
}

std::string format_duration(nanoseconds d) {
  using namespace std::chrono;
  using days = duration<std::int64_t, std::ratio<86400>>;
  if (d < nanoseconds::zero()) d = nanoseconds::zero();
  const std::int64_t ms = duration_cast<milliseconds>(d).count();
  if (ms < 1000) return std::to_string(ms) + "ms";
  if (ms < 10'000) return with_unit(ms / 1000, ms / 100 % 10 ? "." : "s", ms / 100 % 10, "s");
  const std::int64_t s = ms / 1000;
  if (s < 60) return std::to_string(s) + "s";
  if (s < 3600) return with_unit(s / 60, "m", s % 60, "s");
  if (s < 86400) return with_unit(s / 3600, "h", s / 60 % 60, "m");
  return with_unit(duration_cast<days>(d).count(), "d", s / 3600 % 24, "h");
}

std::string format_short_time(nanoseconds d) {
  using namespace std::chrono;
  const std::int64_t us = duration_cast<microseconds>(std::max(d, nanoseconds::zero())).count();
  if (us < 1000) return std::to_string(us) + "us";
  if (us < 10'000) return with_unit(us / 1000, us / 100 % 10 ? "." : "ms", us / 100 % 10, "ms");
  return format_duration(d);
}

}  // namespace holdfast::tool
