#pragma once

#include <chrono>
#include <holdfast/result.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::engine {

/// `scheme:rest?option=value&option=value`, with %XX taken out of the rest and the values.
struct url {
  std::string scheme;
  std::string rest;
  std::vector<std::pair<std::string, std::string>> options;

  /// The last value given for an option, or null.
  const std::string* option(std::string_view name) const noexcept;
};

/// Fails with a message that shows no secret (holdfast::without_secrets).
result<url> parse_url(std::string_view text);

/// RFC 3986, 3.1. Something else in front of the first colon may be a user, and a password follows.
bool is_scheme(std::string_view text) noexcept;
/// ASCII letters in lower case: schemes have none (RFC 3986, 3.1).
std::string lower(std::string_view text);
/// %XX taken out. The message of a failure repeats nothing of the text.
result<std::string> unescape(std::string_view text);

/// Fails, with the nearest one that there is, if an option is not among the known ones.
status check_options(const url& u, std::span<const std::string_view> known);

/// The candidate that takes the fewest changes to get to; empty if none is near.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

/// `250ms`, `1.5s`, `2m`, `1h30m`; a bare number is seconds.
result<std::chrono::milliseconds> parse_duration(std::string_view text);

}  // namespace holdfast::engine
