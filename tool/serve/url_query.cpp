#include "tool/serve/url_query.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "tool/percent_code.hpp"

namespace holdfast::tool {

namespace {

/// As in forms: a + stands for a blank.
std::optional<std::string> decoded(std::string_view text) {
  std::string blanks(text);
  std::replace(blanks.begin(), blanks.end(), '+', ' ');
  return percent_decoded(blanks);
}

}  // namespace

std::optional<std::string> query_value(std::string_view query, std::string_view key) {
  while (!query.empty()) {
    const auto pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    const auto equals = pair.find('=');
    if (equals != pair.npos && pair.substr(0, equals) == key)
      return decoded(pair.substr(equals + 1));
  }
  return std::nullopt;
}

std::optional<double> seconds_in(std::string_view text) {
  double seconds = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (wrong != std::errc{} || end != text.data() + text.size() || !(seconds >= 0)) return {};
  return seconds;
}

}  // namespace holdfast::tool
