#pragma once

#include <string>
#include <vector>

namespace holdfast::tool {

/// Rows in columns, two spaces apart; no trailing blanks. The first row is the heading.
class table {
 public:
  explicit table(std::vector<std::string> heading) { rows_.push_back(std::move(heading)); }
  /// Missing cells are empty.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// `bold`: an escape sequence emphasises the heading.
  std::string text(bool bold) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace holdfast::tool
