#include "tool/cli_values.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <holdfast/options.hpp>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "tool/duration.hpp"
#include "tool/failure.hpp"
#include "tool/nearest.hpp"
#include "tool/output_file.hpp"
#include "tool/serve/host_check.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr std::size_t longest_reason = 200;  // bytes, as in the library

[[noreturn]] void refuse(const given& g, const std::string& why) {
  throw failure_exit(exit_code::usage, std::string(g.option) + ": " + why);
}

/// The index of the given word in `known`; `fallback` if none was given.
std::size_t choice_or(const given& g, std::size_t fallback,
                      std::span<const std::string_view> known) {
  if (!g.text) return fallback;
  const auto at = std::find(known.begin(), known.end(), *g.text);
  if (at != known.end()) return static_cast<std::size_t>(at - known.begin());
  std::string listed;
  for (const auto name : known) listed += (listed.empty() ? "" : ", ") + std::string(name);
  const std::vector<std::string> names(known.begin(), known.end());
  refuse(g, "'" + printable(*g.text) + "' is not one of " + listed + did_you_mean(*g.text, names));
}

/// The words stand for the values of an enumeration, in its order.
template <class Enumeration>
Enumeration choice_of(const given& g, Enumeration fallback,
                      std::span<const std::string_view> known) {
  return static_cast<Enumeration>(choice_or(g, static_cast<std::size_t>(fallback), known));
}

}  // namespace

nanoseconds duration_or(const given& g, nanoseconds fallback) {
  if (!g.text) return fallback;
  try {
    return parse_duration(*g.text);
  } catch (const std::invalid_argument& e) {
    refuse(g, e.what());
  }
}

milliseconds lease_or(const given& g, milliseconds fallback) {
  const nanoseconds lease = duration_or(g, fallback);
  if (lease < min_lease)
    refuse(g,
           "'" + *g.text + "' is too short; the shortest lease is " + format_duration(min_lease));
  if (lease > max_lease)
    refuse(g, "'" + *g.text + "' is too long; the longest lease is " + format_duration(max_lease));
  return std::chrono::duration_cast<milliseconds>(lease);
}

std::uint32_t number_or(const given& g, std::uint32_t lowest, std::uint32_t highest,
                        std::uint32_t fallback) {
  if (!g.text) return fallback;
  std::uint32_t value = 0;
  const char* const last = g.text->data() + g.text->size();
  const auto [end, error] = std::from_chars(g.text->data(), last, value);
  const std::string range = std::to_string(lowest) + " to " + std::to_string(highest);
  if (end != last || error == std::errc::invalid_argument)
    refuse(g, "'" + printable(*g.text) + "' is not a whole number from " + range);
  if (error != std::errc{} || value < lowest || value > highest)
    refuse(g, "'" + *g.text + "' is out of range: " + range + "; did you mean " +
                  std::to_string(error == std::errc{} && value < lowest ? lowest : highest) + "?");
  return value;
}

namespace {

std::uint64_t tokens_of(const given& g, const std::string& text) {
  std::uint64_t n = 0;
  const char* const end = text.data() + text.size();
  const auto [after, wrong] = std::from_chars(text.data(), end, n);
  if (wrong == std::errc{} && after == end && n > 0) return n;
  refuse(g,
         "'" + printable(*g.text) + "' is not a rate; write 10/s, 600/1m or 10/1s:20 (burst 20)");
}

}  // namespace

rate_rule rate_of(const given& g) {
  const std::string& text = *g.text;
  const auto slash = std::min(text.find('/'), text.size());
  const auto colon = std::min(text.find(':', slash), text.size());
  rate_rule r;
  r.tokens = tokens_of(g, text.substr(0, slash));
  std::string per = text.substr(std::min(slash + 1, colon), colon - std::min(slash + 1, colon));
  if (per.empty()) (void)tokens_of(g, {});
  if (per.find_first_of("0123456789") == per.npos) per.insert(0, 1, '1');
  r.per = std::chrono::floor<std::chrono::microseconds>(duration_or({g.option, per}, {}));
  if (r.per <= r.per.zero())
    refuse(g, "'" + printable(text) +
                  "' has no time in which the tokens come back; write 10/s, 600/1m or 1/500ms");
  if (constexpr std::chrono::hours longest{31 * 24}; r.per > longest)
    refuse(g,
           "'" + printable(text) + "': the longest time of a rate is " + format_duration(longest));
  if (colon < text.size()) r.burst = tokens_of(g, text.substr(colon + 1));
  return r;
}

int exit_code_or(const given& g, int fallback) {
  return static_cast<int>(number_or(g, 0, 255, static_cast<std::uint32_t>(fallback)));
}

on_lost on_lost_or(const given& g, on_lost fallback) {
  return choice_of(g, fallback, on_lost_words);
}

log_format log_format_or(const given& g, log_format fallback) {
  return choice_of(g, fallback, log_format_words);
}

color_when color_or(const given& g, color_when fallback) {
  return choice_of(g, fallback, color_words);
}

std::string word_or(const given& g, std::span<const std::string_view> known, std::string fallback) {
  return g.text ? std::string(known[choice_or(g, 0, known)]) : fallback;
}

metrics_format metrics_format_or(const given& g, metrics_format fallback) {
  return choice_of(g, fallback, metrics_format_words);
}

std::string reason_or(const given& g, std::string fallback) {
  if (!g.text) return fallback;
  if (g.text->size() > longest_reason)
    refuse(g, "the text is " + std::to_string(g.text->size()) + " bytes long; at most " +
                  std::to_string(longest_reason) + " are allowed");
  if (const std::string shown = printable(*g.text); shown != *g.text)
    refuse(g, shown + " holds control characters; write one line of plain text");
  return *g.text;
}

std::string address_or(const given& g, std::string fallback) {
  if (!g.text) return fallback;
  if (port_of(':' + *g.text))
    refuse(g, "'" + printable(*g.text) + "' lacks the colon; did you mean :" + *g.text + "?");
  if (!port_of(*g.text))
    refuse(g, "'" + printable(*g.text) +
                  "' has no port from 0 to 65535; write :PORT, ADDRESS:PORT or [IPV6]:PORT");
  return *g.text;
}

std::string output_path(const given& g) {
  if (!g.text) return {};
  if (g.text->empty()) refuse(g, "the path is empty; name a file");
  const std::filesystem::path path = *g.text;
  std::error_code ignored;
  if (is_directory(path, ignored))
    refuse(g, printable(*g.text) + " is a directory; name a file in it");
  const output_place at = place_of_output(*g.text);
  if (at.in_place) {
    if (::access(at.path.c_str(), W_OK) == 0) return *g.text;
    refuse(g, "cannot write to " + printable(*g.text) + ": " + std::strerror(errno));
  }
  auto folder = std::filesystem::path(at.path).parent_path();
  if (folder.empty()) folder = ".";
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    refuse(g, "cannot write into " + printable(folder.string()) + ": " + std::strerror(errno));
  return *g.text;
}

}  // namespace holdfast::tool
