#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tool/demo_sale.hpp"

namespace holdfast::tool::demo {

/// The inputs of a run, for the reports.
struct conditions {
  std::string orders_file;
  std::size_t orders = 0;
  std::size_t products = 0;
  std::int64_t stock = 0;   ///< units in total
  std::int64_t demand = 0;  ///< units in total
  std::size_t workers = 0;
  std::chrono::microseconds pause{};
  std::string store;  ///< without a password, as the next
  std::string shop;
};

/// One line that describes the run.
std::string headline(const conditions& c);
/// The table for people.
std::string results_table(const std::vector<sale_result>& all);
/// The results of the SQL check afterwards, one line a strategy; and the products that a strategy
/// got wrong although it promised to be right.
std::string verdicts(const conditions& c, const std::vector<sale_result>& all);
std::string as_json(const conditions& c, const std::vector<sale_result>& all);

/// Whether every strategy that promises to sell min(stock, demand) of each product did so.
bool all_kept(const std::vector<sale_result>& all);

/// On a terminal, a line that is redrawn in place and wiped at the end; elsewhere nothing.
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
