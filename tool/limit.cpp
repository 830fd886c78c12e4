#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <holdfast/timed.hpp>
#include <stop_token>
#include <string_view>
#include <utility>

#include "tool/commands.hpp"
#include "tool/duration.hpp"
#include "tool/failure.hpp"
#include "tool/json.hpp"
#include "tool/open_store.hpp"
#include "tool/signals.hpp"
#include "tool/text.hpp"
#include "tool/waiting.hpp"

namespace holdfast::tool {

namespace {

/// More than any bucket needs if nobody takes from it meanwhile.
constexpr int most_refunds = 10'000;

/// The burst of the largest rule: a bucket takes back at most what it holds.
std::uint64_t largest_burst(const std::vector<rate_rule>& rules) {
  std::uint64_t most = 0;
  for (const auto& r : rules) most = std::max(most, r.burst != 0 ? r.burst : r.tokens);
  return most;
}

/// Refunds until every bucket of the key is full. Reserved tokens come back, too, and the requests
/// that have reserved them still go through. If it is stopped before, its answer allows no tokens.
rate_decision reset(rate_limiter& l, const limit_options& o, const rate_key& key,
                    const std::stop_token& stop) {
  for (int i = 0; i < most_refunds; ++i) {
    auto now = l.peek(1, key);
    const bool full = std::all_of(now.rules.begin(), now.rules.end(), [](const rate_state& r) {
      return r.reset == std::chrono::microseconds::zero();
    });
    if (full) return now;
    if (stop.stop_requested()) return {};
    rate_decision all{.taken = true, .rules = now.rules, .tokens = largest_burst(o.rules)};
    for (rate_state& r : all.rules) r.due = std::chrono::microseconds::max();
    l.refund(all, key);
  }
  throw failure_exit(exit_code::busy, printable(o.name) +
                                          ": not all tokens are back yet; run it again, after "
                                          "programs that take them have stopped");
}

/// Without rules if the store does not answer in a moment: the tokens are back nevertheless.
rate_decision seen_after_refund(const rate_limiter& l, const rate_key& key) {
  constexpr std::chrono::seconds moment{1};
  const detail::call_limit in_time{saturated_add(boot_clock::now(), moment)};
  try {
    return l.peek(1, key);
  } catch (const error&) {
    return {};
  }
}

rate_decision decide(rate_limiter& l, const limit_options& o, boot_time deadline,
                     std::stop_token stop) {
  const rate_key key = o.key.empty() ? rate_key{} : rate_key{{.part = "key", .value = o.key}};
  if (o.peek) return l.peek(o.tokens, key);
  if (o.reset) return reset(l, o, key, stop);
  if (!o.refund) return l.take_for(o.tokens, time_left(deadline), key, std::move(stop));
  l.refund(o.tokens, key);
  return seen_after_refund(l, key);
}

/// As --rate takes it, without rounding.
std::string typed(std::chrono::microseconds time) {
  constexpr std::array<std::pair<std::int64_t, const char*>, 5> units{{{86'400'000'000, "d"},
                                                                       {3'600'000'000, "h"},
                                                                       {60'000'000, "m"},
                                                                       {1'000'000, "s"},
                                                                       {1'000, "ms"}}};
  const std::int64_t us = time.count();
  for (const auto& [size, unit] : units)
    if (us % size == 0) return std::to_string(us / size) + unit;
  std::string digits = std::to_string(us % 1'000 + 1'000).substr(1);
  digits.erase(digits.find_last_not_of('0') + 1);
  return std::to_string(us / 1'000) + '.' + digits + "ms";
}

/// Without a burst if the same rate can be written so.
std::string typed(const rate_bucket& b) {
  constexpr std::chrono::microseconds longest = std::chrono::hours(31 * 24);
  const auto times = static_cast<std::int64_t>(b.limit / b.tokens);
  if (b.limit % b.tokens == 0 && b.per <= longest / times)
    return std::to_string(b.limit) + '/' + typed(b.per * times);
  return std::to_string(b.tokens) + '/' + typed(b.per) + ':' + std::to_string(b.limit);
}

bool is_of(const rate_bucket& b, const rate_rule& r) {
  const auto a_while = [](std::uint64_t tokens, std::chrono::microseconds per) {
    return static_cast<long double>(tokens) * static_cast<long double>(per.count());
  };
  return b.limit == (r.burst != 0 ? r.burst : r.tokens) &&
         a_while(b.tokens, r.per) == a_while(r.tokens, b.per);
}

/// The rates in use that differ from those of the command.
struct other_rates {
  std::string named;    ///< 2/1d, not 3/1d
  std::string options;  ///< --rate 2/1d
  std::size_t count = 0;
};

/// None if the store does not say.
other_rates rates_in_use(const session& s, const limit_options& o) try {
  constexpr std::size_t all = 10'000;
  const std::vector<std::string> key(o.key.empty() ? 0 : 1, o.key);
  const auto buckets = s.buckets(o.name, all);
  other_rates found;
  for (std::size_t i = 0; i < o.rules.size(); ++i) {
    const auto bucket = std::find_if(buckets.begin(), buckets.end(), [&](const rate_bucket& b) {
      return b.rule == std::to_string(i) && b.key == key && b.error.empty();
    });
    if (bucket == buckets.end() || is_of(*bucket, o.rules[i])) continue;
    const std::string rate = typed(*bucket);
    found.named += (found.count == 0 ? "" : ", and ") + rate + ", not " + o.rates[i];
    found.options += (found.count == 0 ? "" : " and ") + ("--rate " + rate);
    ++found.count;
  }
  return found;
} catch (const error&) {
  return {};
}

/// The limiters of other programs have no versions: the library's message names the stored rates.
void explain_other_rates(const session& s, const limit_options& o, const error& e) {
  const bool has_versions =
      std::string_view(e.what()).find("the same version") != std::string::npos;
  if (e.reason() != errc::capacity_mismatch || !has_versions) return;
  const other_rates found = rates_in_use(s, o);
  if (found.count == 0) return;
  throw failure_exit(exit_code::config,
                     printable(o.name) + " is in use with the rate " + found.named + "; give " +
                         found.options + ", or replace " + (found.count == 1 ? "it" : "them") +
                         " for all programs with --rules-version " + std::to_string(o.version + 1));
}

rate_decision decide_or_explain(const session& s, rate_limiter& l, const limit_options& o,
                                boot_time deadline, std::stop_token stop) {
  try {
    return decide(l, o, deadline, std::move(stop));
  } catch (const error& e) {
    explain_other_rates(s, o, e);
    throw;
  }
}

std::string for_people(const limit_options& o, const rate_decision& d, std::string_view outcome) {
  std::string line = printable(o.name) + ": " + std::string(outcome);
  if (d.rules.empty()) return line + '\n';
  const auto& nearest = d.tightest();
  line +=
      ", " + std::to_string(nearest.remaining) + " of " + std::to_string(nearest.limit) + " left";
  if (outcome == "refused") line += "; try again in " + format_duration(d.wait);
  return line + '\n';
}

}  // namespace

int limit(const common_options& common, const limit_options& o, log& to) {
  signal_inbox signals;
  const boot_time deadline = saturated_add(boot_clock::now(), o.wait);
  rate_decision d;
  std::string url;
  bool done = false;
  int stopped_by = 0;
  {
    waiting room{signals, to, o.name};
    const opened_store s = open_store(common, to, deadline);
    url = s.url;
    room.in_line_at(s.session);
    rate_limiter l{s.session, o.name, o.rules, {.version = o.version}};
    d = decide_or_explain(s.session, l, o, deadline, room.stop());
    done = d || o.refund;
    stopped_by = room.stopped_by(done);
  }
  if (stopped_by != 0) return exit_code::of_signal(stopped_by);
  signals.close();
  const std::string_view outcome = o.reset    ? "reset"
                                   : o.refund ? "refunded"
                                   : d        ? (o.peek ? "free" : "taken")
                                              : "refused";
  print(common.json ? limit_json(o.name, url, outcome, d) : for_people(o, d, outcome));
  return done ? exit_code::ok : o.busy_code;
}

}  // namespace holdfast::tool
