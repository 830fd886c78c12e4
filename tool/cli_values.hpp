#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tool/options.hpp"

/// Conversions from the words of the command line to values. Each throws failure_exit (64) with one
/// line that names the option, the given word and the nearest valid value, and returns the fallback
/// if no word was given.
namespace holdfast::tool {

/// The words of options that take one of a few.
inline constexpr std::array<std::string_view, 3> color_words{"auto", "always", "never"};
inline constexpr std::array<std::string_view, 2> log_format_words{"text", "json"};
inline constexpr std::array<std::string_view, 2> metrics_format_words{"openmetrics", "prometheus"};
inline constexpr std::array<std::string_view, 3> on_lost_words{"term", "kill", "warn"};
inline constexpr std::array<std::string_view, 6> sort_words{"name",  "kind",    "age",
                                                            "lease", "waiters", "wait"};
inline constexpr std::array<std::string_view, 8> until_words{
    "granted", "released", "hand-over", "lost", "joined", "left", "held", "free"};
inline constexpr std::array<std::string_view, 4> completion_words{"bash", "zsh", "fish", "names"};

struct given {
  std::string_view option;  ///< as people write it: "--ttl"
  const std::optional<std::string>& text;
};

std::chrono::nanoseconds duration_or(const given& g, std::chrono::nanoseconds fallback);
/// As duration_or, within [min_lease, max_lease].
std::chrono::milliseconds lease_or(const given& g, std::chrono::milliseconds fallback);
std::uint32_t number_or(const given& g, std::uint32_t lowest, std::uint32_t highest,
                        std::uint32_t fallback);
/// Parses "10/s", "600/1m", "10/1s:20": tokens, time, burst.
rate_rule rate_of(const given& g);
int exit_code_or(const given& g, int fallback);

on_lost on_lost_or(const given& g, on_lost fallback);
log_format log_format_or(const given& g, log_format fallback);
color_when color_or(const given& g, color_when fallback);
/// One of `known`.
std::string word_or(const given& g, std::span<const std::string_view> known, std::string fallback);
metrics_format metrics_format_or(const given& g, metrics_format fallback);

/// One line of UTF-8 that the library accepts as a reason.
std::string reason_or(const given& g, std::string fallback);

/// `:PORT` or `ADDRESS:PORT`, where to listen.
std::string address_or(const given& g, std::string fallback);

/// The path of a file that can be written, as far as that can be checked in advance.
std::string output_path(const given& g);

}  // namespace holdfast::tool
