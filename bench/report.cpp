#include "bench/report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace bench {
namespace {

using nlohmann::ordered_json;

ordered_json or_null(double n) { return n < 0 ? ordered_json{} : ordered_json(n); }
ordered_json or_null(std::string_view s) { return s.empty() ? ordered_json{} : ordered_json(s); }

std::string as_json(const row& r) {
  const outcome& o = r.median;
  const double store_ops = r.counts_operations ? o.store_ops_per_acquire : -1;
  const double store_ops_per_s = r.counts_operations ? o.store_ops_per_s : -1;
  ordered_json ratios = ordered_json::object();
  for (const auto& [name, ratio] : r.ratios) ratios[std::string{name}] = ratio;
  return ordered_json{{"workload", r.workload},
                      {"subject", r.subject},
                      {"ops_per_s", or_null(o.ops_per_s)},
                      {"p50_us", or_null(o.p50_us)},
                      {"p99_us", or_null(o.p99_us)},
                      {"min_share", or_null(o.min_share)},
                      {"max_share", or_null(o.max_share)},
                      {"store_ops_per_acquire", or_null(store_ops)},
                      {"ratio_to_floor", or_null(r.ratio)},
                      {"floor", or_null(r.baseline)},
                      {"ratio_of", or_null(r.ratio_of)},
                      {"ratios", ratios},
                      {"efficiency", or_null(o.efficiency)},
                      {"cpu_percent", or_null(o.cpu_percent)},
                      {"store_ops_per_s", or_null(store_ops_per_s)},
                      {"store_cpu_us", or_null(o.store_cpu_us)},
                      {"bytes_each", or_null(o.bytes_each)},
                      {"statements_each", or_null(o.statements_each)},
                      {"round_trips", or_null(o.round_trips)},
                      {"least_us", or_null(o.least_us)},
                      {"hand_overs", or_null(r.hand_overs)},
                      {"store_cpu_ratio", or_null(r.cpu_ratio)},
                      {"rounds", r.rounds},
                      {"acquired", o.acquired}}
             .dump() +
         "\n";
}

/// Three significant digits, without an exponent.
std::string short_number(double n) {
  if (n < 0) return "-";
  if (n >= 100) return fmt::format("{:.0f}", n);
  if (n >= 10) return fmt::format("{:.1f}", n);
  return fmt::format("{:.2f}", n);
}

std::string ratio_text(const row& r) {
  return r.ratio < 0 ? "" : fmt::format("{} × {}", short_number(r.ratio), r.baseline);
}

std::string note(const row& r) {
  const outcome& o = r.median;
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (o.efficiency >= 0) add(fmt::format("efficiency {:.0f} %", 100 * o.efficiency));
  if (o.cpu_percent >= 0) add(fmt::format("{:.2f} % of a processor", o.cpu_percent));
  if (o.bytes_each >= 0) add(fmt::format("{:.0f} bytes each", o.bytes_each));
  if (o.statements_each >= 0) add(fmt::format("{:.4f} a waiter and s", o.statements_each));
  if (o.store_cpu_us >= 0) add(fmt::format("server {:.1f} µs", o.store_cpu_us));
  if (r.cpu_ratio >= 0) add(fmt::format("{:.2f} × its CPU", r.cpu_ratio));
  if (o.round_trips >= 0) add(fmt::format("{:.1f} round trips", o.round_trips));
  if (o.least_us >= 0) add(fmt::format("without a store {:.0f} µs", o.least_us));
  if (r.hand_overs >= 0) add(fmt::format("{:.2f} hand-overs", r.hand_overs));
  return text;
}

std::string cells(const char* layout, const row& r) {
  const outcome& o = r.median;
  return fmt::format(fmt::runtime(layout), r.workload, r.subject, short_number(o.ops_per_s),
                     short_number(o.p50_us), short_number(o.p99_us), short_number(o.min_share),
                     short_number(o.max_share),
                     r.counts_operations ? short_number(o.store_ops_per_acquire) : "-",
                     ratio_text(r), note(r));
}

constexpr const char* plain = "{:<15}{:<24}{:>10}{:>10}{:>10}{:>7}{:>7}{:>9}  {:<20}{}\n";
constexpr const char* piped = "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n";

std::string names(const char* layout) {
  return fmt::format(fmt::runtime(layout), "workload", "subject", "ops/s", "p50 µs", "p99 µs",
                     "least", "most", "ops/acq", "to its floor", "");
}

}  // namespace

std::string heading(form f) {
  switch (f) {
    case form::table:
      return names(plain);
    case form::markdown:
      return names(piped) + "|---|---|--:|--:|--:|--:|--:|--:|---|---|\n";
    case form::json:
      return {};
  }
  return {};
}

std::string line(form f, const row& r) {
  return f == form::json ? as_json(r) : cells(f == form::table ? plain : piped, r);
}

}  // namespace bench
