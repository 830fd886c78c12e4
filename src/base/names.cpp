#include "base/names.hpp"

#include <algorithm>
#include <holdfast/options.hpp>

namespace holdfast::base {

namespace {

std::size_t sequence_length(unsigned char first) noexcept {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return 2;
  if (first >= 0xE0 && first <= 0xEF) return 3;
  if (first >= 0xF0 && first <= 0xF4) return 4;
  return 0;
}

// The second byte rules out overlong forms, surrogates and what lies beyond U+10FFFF (RFC 3629).
bool second_byte_allowed(unsigned char first, unsigned char second) noexcept {
  switch (first) {
    case 0xE0:
      return second >= 0xA0;
    case 0xED:
      return second <= 0x9F;
    case 0xF0:
      return second >= 0x90;
    case 0xF4:
      return second <= 0x8F;
    default:
      return true;
  }
}

bool continues(unsigned char byte) noexcept { return (byte & 0xC0) == 0x80; }

// Rounding down would end it early, and rounding up would keep others out for longer than was
// meant.
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
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const std::size_t length = sequence_length(byte(0));
    if (length == 0 || length > text.size()) return false;
    for (std::size_t i = 1; i < length; ++i) {
      if (!continues(byte(i))) return false;
    }
    if (length > 1 && !second_byte_allowed(byte(0), byte(1))) return false;
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
    return failure{errc::invalid_argument, "the reason has " + std::to_string(reason.size()) +
                                               " bytes; at most " +
                                               std::to_string(max_reason_bytes) + " are kept"};
  }
  if (!is_utf8(reason) || has_control_characters(reason)) {
    return failure{errc::invalid_argument, "the reason must be UTF-8 without control characters"};
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
  while (end > 0 && continues(static_cast<unsigned char>(text[end]))) --end;
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
