#include "tool/text.hpp"

#include <locale.h>
#include <wchar.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <utility>

namespace holdfast::tool {

namespace {

struct code_point {
  std::uint32_t value = 0;
  std::size_t bytes = 0;  ///< 0: not UTF-8
};

bool is_tail(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

code_point decode(std::string_view s) {
  const auto first = static_cast<unsigned char>(s[0]);
  if (first < 0x80U) return {first, 1};
  const std::size_t n = first >= 0xF0U ? 4 : first >= 0xE0U ? 3 : 2;
  if (first < 0xC2U || first > 0xF4U || s.size() < n) return {};
  std::uint32_t value = first & (0xFFU >> (n + 1));
  for (std::size_t i = 1; i < n; ++i) {
    if (!is_tail(s[i])) return {};
    value = value << 6U | (static_cast<unsigned char>(s[i]) & 0x3FU);
  }
  constexpr std::array<std::uint32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800U && value < 0xE000U;
  if (value < least.at(n) || value > 0x10FFFFU || surrogate) return {};
  return {value, n};
}

/// The first and last of each range of characters that end a line, reverse the text, or are
/// invisible: two names that differ in them alone would look the same. The page of serve escapes
/// them, too (text.js).
constexpr std::array<std::pair<std::uint32_t, std::uint32_t>, 20> hidden{
    {{0x0, 0x1F},        {0x7F, 0x9F},       {0xAD, 0xAD},       {0x34F, 0x34F},
     {0x61C, 0x61C},     {0x115F, 0x1160},   {0x17B4, 0x17B5},   {0x180B, 0x180F},
     {0x200B, 0x200F},   {0x2028, 0x202E},   {0x2060, 0x206F},   {0x3164, 0x3164},
     {0xFE00, 0xFE0E},   {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0},   {0xFFF9, 0xFFFB},
     {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE007F}, {0xE0100, 0xE01EF}}};

bool is_dangerous(std::uint32_t c) {
  return std::any_of(hidden.begin(), hidden.end(),
                     [c](const auto& range) { return range.first <= c && c <= range.second; });
}

std::string as_code(std::uint32_t c, const char* format) {
  std::array<char, 16> out{};
  const int n = std::snprintf(out.data(), out.size(), format, static_cast<unsigned>(c));
  return {out.data(), static_cast<std::size_t>(n)};
}

/// Gives access to the C library's widths of letters (two columns, or none) while this object
/// lives: names are UTF-8, whatever the environment's locale is.
class wide_letters {
 public:
  wide_letters() : before_(utf8() ? ::uselocale(utf8()) : nullptr) {}
  wide_letters(const wide_letters&) = delete;
  wide_letters& operator=(const wide_letters&) = delete;
  ~wide_letters() {
    if (before_) ::uselocale(before_);
  }
  std::size_t columns(code_point c) const {
    if (c.bytes < 2 || !before_) return 1;
    const int n = ::wcwidth(static_cast<wchar_t>(c.value));
    return n < 0 ? 1 : static_cast<std::size_t>(n);
  }

 private:
  static locale_t utf8() {
    static const locale_t made = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    return made;
  }
  locale_t before_;
};

std::string escape(std::uint32_t c) {
  if (c == '\n') return "\\n";
  if (c == '\t') return "\\t";
  return c < 0x80U ? as_code(c, "\\x%02x") : as_code(c, "\\u{%x}");
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const code_point c = decode(text.substr(at));
    if (c.bytes == 0) {
      out += as_code(static_cast<unsigned char>(text[at]), "\\x%02x");
      ++at;
      continue;
    }
    out += is_dangerous(c.value) ? escape(c.value) : std::string(text.substr(at, c.bytes));
    at += c.bytes;
  }
  return out;
}

std::string printable(std::string_view text) {
  const std::string safe = escaped(text);
  return safe == text ? safe : '"' + safe + '"';
}

// They occur in its texts only, where each may be escaped; the line's end, and what is below 0x20,
// JSON has escaped already.
std::string escaped_json(std::string_view document) {
  constexpr std::uint32_t two_escapes = 0x10000;
  std::string out;
  out.reserve(document.size());
  while (!document.empty()) {
    const auto plain = std::find_if(document.begin(), document.end(),
                                    [](char c) { return static_cast<unsigned char>(c) >= 0x7FU; });
    const auto n = static_cast<std::size_t>(plain - document.begin());
    out += document.substr(0, n);
    document.remove_prefix(n);
    if (document.empty()) break;
    const code_point c = decode(document);
    const std::size_t bytes = std::max<std::size_t>(c.bytes, 1);
    if (c.bytes == 0 || !is_dangerous(c.value)) {
      out += document.substr(0, bytes);
    } else if (c.value < two_escapes) {
      out += as_code(c.value, "\\u%04x");
    } else {
      out += as_code(0xD800U + ((c.value - two_escapes) >> 10U), "\\u%04x");
      out += as_code(0xDC00U + ((c.value - two_escapes) & 0x3FFU), "\\u%04x");
    }
    document.remove_prefix(bytes);
  }
  return out;
}

std::string_view unsigned_message(std::string_view text) {
  constexpr std::string_view signature = "holdfast: ";
  if (text.starts_with(signature)) text.remove_prefix(signature.size());
  return text;
}

std::string one_line(std::string_view text) {
  constexpr std::string_view blank = " \t\n";
  std::string line;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(blank), text.size()));
    const auto end = std::min(text.find('\n'), text.size());
    line += text.substr(0, text.substr(0, end).find_last_not_of(blank) + 1);
    text.remove_prefix(end);
    if (text.find_first_not_of(blank) == text.npos) return line;
    line += ' ';
  }
}

std::string rfc3339(std::chrono::system_clock::time_point t) {
  using namespace std::chrono;
  const auto ms = floor<milliseconds>(t.time_since_epoch());
  const auto s = floor<seconds>(ms);
  const std::time_t when = s.count();
  std::tm parts{};
  gmtime_r(&when, &parts);
  std::array<char, 80> out{};
  const std::size_t n = std::strftime(out.data(), 32, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(out.data() + n, out.size() - n, ".%03dZ", static_cast<int>((ms - s).count()));
  return out.data();
}

bool is_known(std::chrono::system_clock::time_point t) noexcept {
  return t.time_since_epoch().count() > 0;
}

std::string ordinal(std::size_t n) {
  const std::size_t last = n % 10;
  const bool teen = n / 10 % 10 == 1;
  const char* ending = teen || last > 3 || last == 0 ? "th"
                       : last == 1                   ? "st"
                       : last == 2                   ? "nd"
                                                     : "rd";
  return std::to_string(n) + ending;
}

double seconds_of(std::chrono::nanoseconds d) {
  // Whole milliseconds: more digits would only be noise to read.
  return static_cast<double>(std::chrono::round<std::chrono::milliseconds>(d).count()) / 1000;
}

double exact_seconds(std::chrono::nanoseconds d) {
  return std::chrono::duration<double>(d).count();
}

std::size_t columns_of(std::string_view text) {
  const wide_letters known;
  std::size_t n = 0;
  for (std::size_t at = 0; at < text.size();) {
    const code_point c = decode(text.substr(at));
    n += known.columns(c);
    at += std::max<std::size_t>(c.bytes, 1);
  }
  return n;
}

std::string shortened(const std::string& text, std::size_t columns) {
  if (columns_of(text) <= columns) return text;
  if (columns == 0) return {};
  const wide_letters known;
  std::size_t seen = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const code_point c = decode(std::string_view(text).substr(at));
    seen += known.columns(c);
    if (seen >= columns) break;
    at += std::max<std::size_t>(c.bytes, 1);
  }
  return text.substr(0, at) + "…";
}

std::string padded(const std::string& text, std::size_t columns) {
  std::string cell = shortened(text, columns);
  cell.append(columns - std::min(columns, columns_of(cell)), ' ');
  return cell;
}

}  // namespace holdfast::tool
