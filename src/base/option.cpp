#include "base/option.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/files.hpp"
#include "base/names.hpp"
#include "base/words.hpp"

namespace holdfast::base {

namespace {

constexpr std::size_t longest_word = 80;

std::string in_words(std::chrono::milliseconds t) {
  using namespace std::chrono;
  if (t % hours(1) == t.zero()) return std::to_string(t / hours(1)) + "h";
  if (t % seconds(1) == t.zero()) return std::to_string(t / seconds(1)) + "s";
  return std::to_string(t.count()) + "ms";
}

bool is_variable(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  });
}

}  // namespace

failure invalid(std::string what) { return {errc::invalid_argument, std::move(what)}; }

result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  const failure bad =
      invalid("'" + shortened(text, longest_word) +
              "' is not a duration; write 250ms, 1.5s, 2m, 1h30m or a number of seconds");
  constexpr double longest = 1e15;  // milliseconds: far beyond any sensible time, far from overflow
  double total = 0;
  bool any = false;
  while (!text.empty()) {
    double number = 0;
    const auto [after, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (wrong != std::errc{} || !std::isfinite(number) || number < 0) return bad;
    text.remove_prefix(static_cast<std::size_t>(after - text.data()));
    double unit = 1000;
    if (text.starts_with("ms")) {
      unit = 1, text.remove_prefix(2);
    } else if (text.starts_with("s")) {
      text.remove_prefix(1);
    } else if (text.starts_with("m")) {
      unit = 60'000, text.remove_prefix(1);
    } else if (text.starts_with("h")) {
      unit = 3'600'000, text.remove_prefix(1);
    } else if (!text.empty() || any) {
      return bad;
    }
    total = std::min(total + number * unit, longest);
    any = true;
  }
  if (!any) return bad;
  return std::chrono::milliseconds(std::llround(total));
}

status read_time(std::chrono::milliseconds& to, std::string_view name, const std::string& text,
                 const time_range& range) {
  auto read = parse_duration(text);
  if (!read) return invalid(std::string(name) + ": " + read.error().what);
  if (*read >= range.least && *read <= range.most) return to = *read, done{};
  return invalid(std::string(name) + " goes from " + in_words(range.least) + " to " +
                 in_words(range.most));
}

status read_number(std::size_t& to, std::string_view name, std::string_view text, std::size_t least,
                   std::size_t most) {
  std::size_t number = 0;
  const bool good = parse_number(text, number) && number >= least && number <= most;
  if (good) return to = number, done{};
  return invalid(std::string(name) + " is a number from " + std::to_string(least) + " to " +
                 std::to_string(most));
}

status read_password(std::string& to, std::string_view name, const std::string& text) {
  std::string found;
  if (text.empty()) return invalid(std::string(name) + "= is empty");
  if (name.ends_with("_env")) {
    if (!is_variable(text)) {  // it may be the password
      return invalid(std::string(name) +
                     "= is the name of an environment variable: letters, digits and _; this "
                     "value is not such a name, and is not shown because it may be a password");
    }
    const char* const value = std::getenv(text.c_str());
    if (value == nullptr) {
      return invalid("the environment variable " + text +
                     ", which should hold the password, is not set");
    }
    found = value;
  } else {
    if (auto ok = check_no_tilde(text); !ok) return ok;
    auto line = first_line(text);
    if (!line) {
      return invalid("cannot read the password from " + text + ": " + line.error().what);
    }
    found = std::move(*line);
  }
  if (!found.empty()) return to = std::move(found), done{};
  return invalid("the password is empty in the place that " + std::string(name) + "= names");
}

status read_path(std::string& to, std::string_view name, const std::string& text) {
  if (auto ok = check_no_tilde(text); !ok) return ok;
  if (auto ok = check_no_fifo(name, text); !ok) return ok;
  return read_text(to, name, text);
}

status read_text(std::string& to, std::string_view name, const std::string& text) {
  if (text.empty()) return invalid(std::string(name) + "= is empty");
  return to = text, done{};
}

status said_alike(const store_url& u, std::string_view what, std::string_view in_place,
                  std::string_view option) {
  const std::string* const value = u.option(option);
  if (value == nullptr || in_place.empty() || *value == in_place) return done{};
  return invalid("names two " + std::string(what) + ": one before the ?, and another by " +
                 std::string(option) + "=; leave one of them out");
}

status has_one_password(const store_url& u) {
  std::vector<std::string_view> places;
  if (!u.password.empty() || u.empty_password) places.emplace_back("before the @");
  for (const std::string_view option : {"password_env", "password_file"}) {
    if (u.option(option) != nullptr) places.push_back(option);
  }
  if (places.size() < 2) return done{};
  std::string said;
  for (const auto place : places) said.append(said.empty() ? "" : " and ").append(place);
  return invalid("says more than once where the password is (" + said + "); leave one of them");
}

failure unknown_option(std::string_view scheme, std::string_view name,
                       std::span<const std::string_view> known) {
  std::string what =
      shortened(scheme, longest_word) + ": has no option '" + shortened(name, longest_word) + "'";
  if (const auto near = nearest(name, known); !near.empty()) {
    what += "; did you mean '" + std::string(near) + "'?";
  } else if (!known.empty()) {
    what += "; its options are ";
    for (const auto& one : known) what.append(&one == &known.front() ? "" : ", ").append(one);
  }
  return invalid(std::move(what));
}

}  // namespace holdfast::base
