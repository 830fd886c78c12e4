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

/// The text with what may be a user and password taken out: safe in a message.
std::string without_secrets(std::string_view text);

result<url> parse_url(std::string_view text);

/// Fails, with the nearest one that there is, if an option is not among the known ones.
status check_options(const url& u, std::span<const std::string_view> known);

/// The candidate that takes the fewest changes to get to; empty if none is near.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

/// `250ms`, `1.5s`, `2m`, `1h30m`; a bare number is seconds.
result<std::chrono::milliseconds> parse_duration(std::string_view text);

}  // namespace holdfast::engine
