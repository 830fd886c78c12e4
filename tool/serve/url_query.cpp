#include "tool/serve/url_query.hpp"

#include <algorithm>

#include "tool/store_url.hpp"

namespace holdfast::tool {

namespace {

/// As forms write it: a blank is a +.
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

}  // namespace holdfast::tool
