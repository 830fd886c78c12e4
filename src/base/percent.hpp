#pragma once

#include <string>
#include <string_view>

namespace holdfast::base {

/// Appends a byte as URLs write it: `%2F`.
inline void append_percent(std::string& to, char c) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(c);
  to += {'%', digits[byte >> 4], digits[byte & 15]};
}

}  // namespace holdfast::base
