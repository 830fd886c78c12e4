#pragma once

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

/// Parsing of texts that consist of words and numbers. Any program may have written the text.
namespace holdfast::base {

/// Removes the first word and the separator behind it from the text, and returns the word.
inline std::string_view take_word(std::string_view& text, char between = ' ') noexcept {
  const auto end = std::min(text.find(between), text.size());
  const auto word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

/// Returns false unless the whole text is a number.
template <class Number>
bool parse_number(std::string_view text, Number& number, int base = 10) noexcept {
  const char* const end = text.data() + text.size();
  const auto [after, wrong] = std::from_chars(text.data(), end, number, base);
  return wrong == std::errc{} && after == end;
}

/// Removes a number, like take_word. Without a number the text is unchanged.
template <class Number>
bool take_number(std::string_view& text, Number& number, char between = ' ') noexcept {
  std::string_view rest = text;
  if (!parse_number(take_word(rest, between), number)) return false;
  text = rest;
  return true;
}

/// The number at the start of the text, or `otherwise` if there is none.
template <class Number>
Number number_at_start(std::string_view text, Number otherwise) noexcept {
  std::from_chars(text.data(), text.data() + text.size(), otherwise);
  return otherwise;
}

}  // namespace holdfast::base
