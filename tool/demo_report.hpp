#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tool/demo_sale.hpp"

namespace holdfast::tool::demo {

/// What was run, for the reports.
struct conditions {
  std::string orders_file;
  std::size_t orders = 0;
  std::size_t products = 0;
  std::int64_t stock = 0;   ///< units in all
  std::int64_t demand = 0;  ///< units in all
  std::size_t workers = 0;
  std::chrono::microseconds pause{};
  std::string store;  ///< without a password, as the next
  std::string shop;
};

/// One line that says what will be run.
std::string headline(const conditions& c);
/// The table for people.
std::string results_table(const std::vector<sale_result>& all);
/// What SQL found afterwards, one line a strategy; and the products that a strategy which promised
/// to be right got wrong.
std::string verdicts(const conditions& c, const std::vector<sale_result>& all);
std::string as_json(const conditions& c, const std::vector<sale_result>& all);

/// Whether every strategy that promises to sell min(stock, demand) of each product did.
bool all_kept(const std::vector<sale_result>& all);

/// A line on a terminal that is drawn over itself, and wiped at the end; nothing elsewhere.
class progress_line {
 public:
  progress_line(std::string_view title, std::size_t total);
  ~progress_line();
  progress_line(const progress_line&) = delete;
  progress_line& operator=(const progress_line&) = delete;
  void draw(std::size_t done);

 private:
  std::string title_;
  std::size_t total_;
  std::chrono::steady_clock::time_point next_{};
  bool on_;
};

}  // namespace holdfast::tool::demo
