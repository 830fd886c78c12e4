#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::base {

/// Appends a number as 16 hexadecimal digits.
inline void append_hex(std::string& to, std::uint64_t number) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (int shift = 60; shift >= 0; shift -= 4) to += digits[(number >> shift) & 15];
}
inline std::string in_hex(std::uint64_t number) {
  std::string text;
  append_hex(text, number);
  return text;
}

}  // namespace holdfast::base
