#pragma once

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

/// Text that is made of words and numbers, and that any program may have written.
namespace holdfast::base {

/// Takes the first word off the text, and what is between it and the next one.
inline std::string_view take_word(std::string_view& text, char between = ' ') noexcept {
  const auto end = std::min(text.find(between), text.size());
  const auto word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

/// False, unless the text is a number and nothing else.
template <class Number>
bool parse_number(std::string_view text, Number& number, int base = 10) noexcept {
  const char* const end = text.data() + text.size();
  const auto [after, wrong] = std::from_chars(text.data(), end, number, base);
  return wrong == std::errc{} && after == end;
}

/// Takes a number off, as take_word. If there is none, the text stays.
template <class Number>
bool take_number(std::string_view& text, Number& number, char between = ' ') noexcept {
  std::string_view rest = text;
  if (!parse_number(take_word(rest, between), number)) return false;
  text = rest;
  return true;
}

/// The number that the text begins with, or that other one.
template <class Number>
Number number_at_start(std::string_view text, Number otherwise) noexcept {
  std::from_chars(text.data(), text.data() + text.size(), otherwise);
  return otherwise;
}

}  // namespace holdfast::base
