#include "base/names.hpp"

#include <algorithm>
#include <holdfast/options.hpp>

#include "base/utf8.hpp"

namespace holdfast::base {

namespace {

// The length must be exact: rounding down would end the lease early, and rounding up would keep
// others out for longer than intended.
status fits_store(std::chrono::milliseconds lease, const store::capabilities& can) {
  if (lease.count() % can.lease_step_ms == 0 && lease <= std::chrono::seconds(can.max_lease_s)) {
    return done{};
  }
  return failure{errc::invalid_argument,
                 "a lease of " + std::to_string(lease.count()) +
                     " ms is not possible on this store; choose a multiple of " +
                     std::to_string(can.lease_step_ms) + " ms up to " +
                     std::to_string(can.max_lease_s) + " s"};
}

}  // namespace

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

bool has_control_characters(std::string_view text) noexcept {
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  if (std::any_of(text.begin(), text.end(), control)) return true;
  // U+0080 to U+009F: terminals obey some of them.
  for (std::size_t at = text.find('\xC2'); at != text.npos; at = text.find('\xC2', at + 1)) {
    if (at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) < 0xA0) return true;
  }
  return false;
}

status check_name(std::string_view name, std::size_t max_bytes) {
  if (name.empty()) return failure{errc::invalid_name, "a name needs at least one byte"};
  if (name.size() > max_bytes) {
    return failure{errc::invalid_name, "the name has " + std::to_string(name.size()) +
                                           " bytes; this store allows " +
                                           std::to_string(max_bytes)};
  }
  if (!is_utf8(name)) return failure{errc::invalid_name, "the name is not valid UTF-8"};
  if (has_control_characters(name)) {
    return failure{errc::invalid_name, "the name contains control characters"};
  }
  return done{};
}

status check_reason(std::string_view reason) {
  if (reason.size() > max_reason_bytes) {
    return failure{errc::invalid_argument, "the reason or note has " +
                                               std::to_string(reason.size()) + " bytes; at most " +
                                               std::to_string(max_reason_bytes) + " are allowed"};
  }
  if (!is_utf8(reason) || has_control_characters(reason)) {
    return failure{errc::invalid_argument,
                   "the reason or note must be UTF-8 without control characters"};
  }
  return done{};
}

status check_lease(std::chrono::milliseconds lease, const store::capabilities& can) {
  if (lease >= min_lease && lease <= max_lease) return fits_store(lease, can);
  return failure{errc::invalid_argument, "a lease of " + std::to_string(lease.count()) +
                                             " ms is not possible; choose from " +
                                             std::to_string(min_lease.count()) + " ms to 31 days"};
}

std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  auto end = most;
  while (end > 0 && detail::continues(static_cast<unsigned char>(text[end]))) --end;
  return std::string(text.substr(0, end)) + "… (" + std::to_string(text.size()) + " bytes)";
}

bool matches(std::string_view pattern, std::string_view text) noexcept {
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t]) && pattern[p] != '*') {
      ++p, ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++, resume = t;
    } else if (star != std::string_view::npos) {
      p = star + 1, t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

}  // namespace holdfast::base
