#pragma once

#include <cstddef>
#include <string_view>

namespace holdfast::base {

namespace detail {

constexpr std::size_t sequence_length(unsigned char first) noexcept {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return 2;
  if (first >= 0xE0 && first <= 0xEF) return 3;
  if (first >= 0xF0 && first <= 0xF4) return 4;
  return 0;
}

// The second byte rules out overlong forms, surrogates and code points beyond U+10FFFF (RFC 3629).
constexpr bool second_byte_allowed(unsigned char first, unsigned char second) noexcept {
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

constexpr bool continues(unsigned char byte) noexcept { return (byte & 0xC0) == 0x80; }

}  // namespace detail

/// The length in bytes of the first character of a text that is not empty; 0 if it is not UTF-8.
constexpr std::size_t character_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = detail::sequence_length(byte(0));
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!detail::continues(byte(i))) return 0;
  }
  return length == 1 || detail::second_byte_allowed(byte(0), byte(1)) ? length : 0;
}

}  // namespace holdfast::base
