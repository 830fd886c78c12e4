#include "tool/demo_report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tool/fd.hpp"

namespace holdfast::tool::demo {
namespace {

/// Formats a number as 20,000.
std::string grouped(std::int64_t n) {
  std::string digits = std::to_string(n);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  }
  return digits;
}

std::string grouped(std::size_t n) { return grouped(static_cast<std::int64_t>(n)); }

std::string length(std::chrono::microseconds d) {
  const auto us = d.count();
  if (us < 1000) return fmt::format("{} µs", us);
  if (us < 1'000'000) return fmt::format("{:.1f} ms", static_cast<double>(us) / 1e3);
  return fmt::format("{:.1f} s", static_cast<double>(us) / 1e6);
}

bool is_right(const sale_result& r) { return r.books.wrong.empty() && r.books.oversold == 0; }

std::string verdict(const conditions& c, const sale_result& r) {
  if (is_right(r)) {
    return fmt::format("sold = min(stock, demand) for each of {} products", grouped(c.products));
  }
  return fmt::format("{} units oversold, {} of {} products wrong, such as {}",
                     grouped(r.books.oversold), r.books.wrong.size(), c.products,
                     r.books.wrong.empty() ? "none" : r.books.wrong.front());
}

std::string killed_text(const sale_result& r) {
  if (r.killed == 0) return {};
  return fmt::format("; {} workers killed ({} in the middle of a purchase) and replaced", r.killed,
                     r.killed_while_buying);
}

constexpr std::size_t max_named = 10;

std::string broken_promise(const sale_result& r) {
  std::string out = fmt::format("\n{} should be right and is not:\n", name_of(r.how).title);
  for (std::size_t i = 0; i < std::min(r.books.wrong.size(), max_named); ++i) {
    out += fmt::format("  {}\n", r.books.wrong[i]);
  }
  if (r.books.wrong.size() > max_named) {
    out += fmt::format("  and {} more\n", r.books.wrong.size() - max_named);
  }
  return out;
}

nlohmann::ordered_json json_of(const sale_result& r) {
  const std::chrono::duration<double> seconds = r.took;
  return {{"strategy", name_of(r.how).key},
          {"seconds", seconds.count()},
          {"orders_per_s", r.orders_per_second()},
          {"sold", r.books.sold},
          {"should_sell", r.books.should_sell},
          {"oversold", r.books.oversold},
          {"lost_updates", r.books.lost_updates},
          {"retries", r.retries},
          {"wait_p50_us", r.wait_p50.count()},
          {"wait_p99_us", r.wait_p99.count()},
          {"exact", is_right(r)},
          {"wrong_products", r.books.wrong},
          {"workers_killed", r.killed},
          {"killed_while_buying", r.killed_while_buying}};
}

}  // namespace

std::string headline(const conditions& c) {
  return fmt::format(
      "flash sale: {} orders for {} products from {}\n"
      "  demand {} units, stock {}; {} worker processes; a payment takes {}\n"
      "  the shop in {}, locks in {}\n",
      grouped(c.orders), grouped(c.products), c.orders_file, grouped(c.demand), grouped(c.stock),
      c.workers, length(c.pause), c.shop, c.store);
}

std::string results_table(const std::vector<sale_result>& all) {
  constexpr const char* form = "{:<20}{:>10}{:>10}{:>10}{:>14}{:>10}{:>11}{:>11}\n";
  std::string out = fmt::format(fmt::runtime(form), "strategy", "orders/s", "sold", "oversold",
                                "lost updates", "retries", "wait p50", "wait p99");
  for (const auto& r : all) {
    out +=
        fmt::format(fmt::runtime(form), name_of(r.how).title,
                    grouped(static_cast<std::int64_t>(r.orders_per_second())),
                    grouped(r.books.sold), grouped(r.books.oversold), grouped(r.books.lost_updates),
                    grouped(r.retries), length(r.wait_p50), length(r.wait_p99));
  }
  return out;
}

std::string verdicts(const conditions& c, const std::vector<sale_result>& all) {
  std::string out = "checked by SQL:\n";
  std::string broken;
  for (const auto& r : all) {
    out += fmt::format("  {:<20}{}{}\n", name_of(r.how).title, verdict(c, r), killed_text(r));
    if (name_of(r.how).promises && !is_right(r)) broken += broken_promise(r);
    if (!name_of(r.how).promises && is_right(r)) {
      out += "  (without a lock it went well by luck: try more --workers or a longer --pause-us)\n";
    }
  }
  return out + broken;
}

std::string as_json(const conditions& c, const std::vector<sale_result>& all) {
  nlohmann::ordered_json out{{"schema", 1},
                             {"orders", c.orders},
                             {"products", c.products},
                             {"demand", c.demand},
                             {"stock", c.stock},
                             {"workers", c.workers},
                             {"pause_us", c.pause.count()},
                             {"store", c.store},
                             {"shop", c.shop},
                             {"strategies", nlohmann::ordered_json::array()}};
  for (const auto& r : all) out["strategies"].push_back(json_of(r));
  out["verified"] = all_kept(all);
  return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

bool all_kept(const std::vector<sale_result>& all) {
  return std::all_of(all.begin(), all.end(),
                     [](const auto& r) { return !name_of(r.how).promises || is_right(r); });
}

progress_line::progress_line(std::string_view title, std::size_t total)
    : title_{title}, total_{total}, on_{isatty(STDERR_FILENO) == 1} {}

progress_line::~progress_line() {
  if (on_) write_all(STDERR_FILENO, "\r\x1b[K");
}

void progress_line::draw(std::size_t done) {
  const auto now = std::chrono::steady_clock::now();
  if (!on_ || now < next_) return;
  next_ = now + std::chrono::milliseconds{100};
  constexpr std::size_t width = 30;
  const std::size_t full = total_ ? std::min(done, total_) * width / total_ : 0;
  write_all(STDERR_FILENO, fmt::format("\r\x1b[K{:<20}[{:#<{}}{:.<{}}] {} of {} orders", title_, "",
                                       full, "", width - full, grouped(done), grouped(total_)));
}

}  // namespace holdfast::tool::demo
