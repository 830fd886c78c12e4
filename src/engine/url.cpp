#include "engine/url.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <holdfast/session.hpp>
#include <numeric>

#include "engine/names.hpp"

namespace holdfast::engine {

namespace {

constexpr std::size_t longest_shown = 300;
constexpr std::size_t longest_word = 80;

failure malformed(std::string why) { return {errc::invalid_argument, std::move(why)}; }

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

bool is_option_name(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
}

status parse_options(std::string_view text, url& u) {
  while (!text.empty()) {
    const auto end = std::min(text.find('&'), text.size());
    const auto pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto equals = pair.find('=');
    if (equals == pair.npos || equals == 0) {
      return malformed("has an option that is not of the form name=value");
    }
    // Anything else may be the rest of a password: it is not repeated.
    if (!is_option_name(pair.substr(0, equals))) {
      return malformed("has an option whose name is not made of small letters and _");
    }
    auto value = unescape(pair.substr(equals + 1));
    if (!value) return std::move(value.error());
    u.options.emplace_back(std::string(pair.substr(0, equals)), std::move(*value));
  }
  return done{};
}

bool looks_like_a_path(std::string_view text) {
  return text.starts_with('/') || text.starts_with("./") || text.ends_with(".db") ||
         text.ends_with(".sqlite");
}

// The message of a failure says only what is wrong, not where.
result<url> take_apart(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == text.npos || colon == 0 || !is_scheme(text.substr(0, colon))) {
    return malformed(looks_like_a_path(text)
                         ? "names no store; for a file write sqlite: before its path"
                         : "names no store; write for example sqlite:locks.db");
  }
  url u;
  u.scheme = lower(text.substr(0, colon));
  text.remove_prefix(colon + 1);
  const auto question = std::min(text.find('?'), text.size());
  if (text.starts_with("//") && text.find('@', question) != text.npos) {
    return malformed("has an @ behind a ?; in a password write %3F for ?, in an option %40 for @");
  }
  auto rest = unescape(text.substr(0, question));
  if (!rest) return std::move(rest.error());
  u.rest = std::move(*rest);
  text.remove_prefix(std::min(question + 1, text.size()));
  if (auto ok = parse_options(text, u); !ok) return std::move(ok.error());
  return u;
}

}  // namespace

const std::string* url::option(std::string_view name) const noexcept {
  const auto found = std::find_if(options.rbegin(), options.rend(),
                                  [&](const auto& o) { return o.first == name; });
  return found == options.rend() ? nullptr : &found->second;
}

bool is_scheme(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return letter || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
  });
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

result<std::string> unescape(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    unsigned byte = 0;
    const char* const digits = text.data() + i + 1;
    if (i + 2 >= text.size() || std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2) {
      return malformed("has a % without two hexadecimal digits; write %25 for the sign itself");
    }
    plain += static_cast<char>(byte);
    i += 2;
  }
  if (plain.find('\0') != plain.npos) return malformed("contains a zero byte");
  return plain;
}

result<url> parse_url(std::string_view text) {
  auto u = take_apart(text);
  if (u) return u;
  return malformed("the URL '" + shortened(without_secrets(text), longest_shown) + "' " +
                   u.error().what);
}

status check_options(const url& u, std::span<const std::string_view> known) {
  for (const auto& [name, value] : u.options) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string what = shortened(u.scheme, longest_word) + ": has no option '" +
                       shortened(name, longest_word) + "'";
    if (const auto near = nearest(name, known); !near.empty()) {
      what += "; did you mean '" + std::string(near) + "'?";
    }
    return failure{errc::invalid_argument, std::move(what)};
  }
  return done{};
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  std::size_t fewest = std::max<std::size_t>(2, word.size() / 2) + 1;
  for (const auto candidate : candidates) {
    const auto changes = distance(word, candidate);
    if (changes < fewest) best = candidate, fewest = changes;
  }
  return best;
}

result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  const failure bad{errc::invalid_argument, "'" + shortened(text, longest_word) +
                                                "' is not a duration; write 250ms, 1.5s, 2m, 1h30m "
                                                "or a number of seconds"};
  constexpr double longest = 1e15;  // milliseconds: far beyond anything sensible, far from overflow
  double total = 0;
  bool any = false;
  while (!text.empty()) {
    double number = 0;
    const auto [after, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (wrong != std::errc{} || number < 0) return bad;
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
    total += number * unit;
    any = true;
    if (!(total < longest)) return bad;
  }
  if (!any) return bad;
  return std::chrono::milliseconds(std::llround(total));
}

}  // namespace holdfast::engine
