#include "tool/table.hpp"

#include <algorithm>

#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

using row = std::vector<std::string>;

std::vector<std::size_t> widths_of(const std::vector<row>& rows) {
  std::vector<std::size_t> widths;
  for (const row& r : rows) {
    widths.resize(std::max(widths.size(), r.size()));
    for (std::size_t i = 0; i < r.size(); ++i) widths[i] = std::max(widths[i], columns_of(r[i]));
  }
  return widths;
}

std::string line_of(const row& r, const std::vector<std::size_t>& widths) {
  std::string line;
  std::size_t column = 0;
  for (std::size_t i = 0; i < r.size(); ++i) {
    if (!r[i].empty()) {
      line.append(column - columns_of(line), ' ');
      line += r[i];
    }
    column += widths[i] + 2;
  }
  return line;
}

}  // namespace

std::string table::text(bool bold) const {
  const auto widths = widths_of(rows_);
  std::string out;
  for (const row& r : rows_) {
    const std::string line = line_of(r, widths);
    out += bold && out.empty() ? "\x1b[1m" + line + "\x1b[0m" : line;
    out += '\n';
  }
  return out;
}

}  // namespace holdfast::tool
