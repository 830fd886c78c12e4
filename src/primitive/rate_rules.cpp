#include "primitive/rate_rules.hpp"

#include <algorithm>
#include <numeric>

#include "base/names.hpp"

namespace holdfast::primitive {

namespace {

using store::bucket_rule;

constexpr std::uint64_t most = static_cast<std::uint64_t>(store::most_units) / 2;
constexpr std::chrono::microseconds longest_refill = std::chrono::hours{24 * 366 * 10};
constexpr std::size_t max_name = 64;
constexpr std::size_t max_value = 255;

failure refuse(std::string what) { return {errc::invalid_argument, std::move(what)}; }

std::string describe(const rate_rule& r) {
  return "the rule '" + r.name + "' of " + std::to_string(r.tokens) + " tokens each " +
         std::to_string(r.per.count()) + " us, burst " + std::to_string(r.burst);
}

// Divides by the greatest common factor: 600 a minute are 1 each 100,000 us.
result<bucket_rule> count_greedy(const rate_rule& r) {
  const auto per = static_cast<std::uint64_t>(r.per.count());
  const std::uint64_t common = std::gcd(r.tokens, per);
  const std::uint64_t unit = std::max<std::uint64_t>(per / common, 1);
  if (r.burst > most / unit || r.tokens / common > most) {
    return refuse(describe(r) +
                  " cannot be counted exactly; choose rounder numbers or a smaller burst");
  }
  return bucket_rule{static_cast<std::int64_t>(unit), static_cast<std::int64_t>(r.tokens / common),
                     1, static_cast<std::int64_t>(r.burst * unit)};
}

result<bucket_rule> count_interval(const rate_rule& r) {
  if (r.burst > most || r.tokens > most)
    return refuse(describe(r) + " has too many tokens to count");
  return bucket_rule{1, static_cast<std::int64_t>(r.tokens), r.per.count(),
                     static_cast<std::int64_t>(r.burst)};
}

result<bucket_rule> count(const rate_rule& r) {
  if (r.tokens == 0) return refuse(describe(r) + " would never give anything");
  if (r.per < std::chrono::microseconds(1) || r.per > max_lease) {
    return refuse(describe(r) + ": the time goes from 1 us to 31 days");
  }
  auto counted = r.how == refill::greedy ? count_greedy(r) : count_interval(r);
  if (!counted) return counted;
  const std::int64_t steps = (counted->capacity - 1) / counted->gain + 1;
  if (steps > longest_refill.count() / counted->step_us) {
    return refuse(describe(r) + " takes more than ten years to come back");
  }
  return counted;
}

status check_word(std::string_view what, std::string_view word) {
  const auto ok = base::check_name(word, max_name);
  return ok ? ok : refuse(std::string(what) + " of a rule: " + ok.error().what);
}

status check_value(const rate_part& p) {
  if (p.value.size() <= max_value && base::is_utf8(p.value) &&
      !base::has_control_characters(p.value)) {
    return done{};
  }
  return refuse("the key's '" + std::string(p.part) +
                "' has to be UTF-8 without control characters, at most " +
                std::to_string(max_value) + " bytes");
}

// Escapes a value, because colons separate values.
void append_escaped(std::string& to, std::string_view word) {
  for (const char c : word) {
    if (c == ':')
      to += "%3A";
    else if (c == '%')
      to += "%25";
    else
      to += c;
  }
}

result<std::string> bucket_of(const rate_rule& rule, const rate_key& key) {
  std::string id;
  append_escaped(id, rule.name);
  for (const auto& by : rule.by) {
    const auto found =
        std::find_if(key.begin(), key.end(), [&](const rate_part& p) { return p.part == by; });
    if (found == key.end()) {
      return refuse("the key has no '" + by + "', by which the rule '" + rule.name + "' counts");
    }
    if (auto ok = check_value(*found); !ok) return ok.error();
    id += ':';
    append_escaped(id, found->value);
  }
  if (id.size() > store::max_bucket_id) {
    return refuse(
        "the rule '" + rule.name +
        "' and the values by which it counts, with ':' and '%' written as three bytes, have " +
        std::to_string(id.size()) + " bytes together, and at most " +
        std::to_string(store::max_bucket_id) + " are possible: use shorter ones, or a hash");
  }
  return id;
}

}  // namespace

result<std::shared_ptr<const rate_rules>> rate_rules::check(std::vector<rate_rule> rules,
                                                            std::uint32_t version) {
  if (rules.empty() || rules.size() > store::max_buckets) {
    return refuse("a rate limiter has 1 to 16 rules, not " + std::to_string(rules.size()));
  }
  auto made = std::make_shared<rate_rules>();
  made->version_ = version;
  made->smallest_burst_ = most;
  for (auto& rule : rules) {
    if (auto ok = made->add(std::move(rule)); !ok) return ok.error();
  }
  return std::shared_ptr<const rate_rules>(std::move(made));
}

status rate_rules::add(rate_rule r) {
  if (r.name.empty()) r.name = std::to_string(rules_.size());
  if (r.burst == 0) r.burst = r.tokens;
  if (auto ok = check_word("the name", r.name); !ok) return ok;
  for (const auto& by : r.by) {
    if (auto ok = check_word("a part", by); !ok) return ok;
  }
  const auto same = [&](const rate_rule& o) { return o.name == r.name; };
  if (std::any_of(rules_.begin(), rules_.end(), same)) {
    return refuse("two rules are called '" + r.name + "'");
  }
  const auto counted = count(r);
  if (!counted) return counted.error();
  counted_.push_back(*counted);
  smallest_burst_ = std::min(smallest_burst_, r.burst);
  rules_.push_back(std::move(r));
  return done{};
}

result<std::vector<std::string>> rate_rules::buckets_of(const rate_key& key) const {
  std::vector<std::string> ids;
  ids.reserve(rules_.size());
  for (const auto& rule : rules_) {
    auto id = bucket_of(rule, key);
    if (!id) return std::move(id.error());
    ids.push_back(std::move(*id));
  }
  return ids;
}

std::vector<store::bucket_choice> rate_rules::choices(
    const std::vector<std::string>& buckets) const {
  std::vector<store::bucket_choice> all;
  all.reserve(buckets.size());
  for (std::size_t i = 0; i < buckets.size(); ++i) all.push_back({buckets[i], counted_[i]});
  return all;
}

// Splits and unescapes what append_escaped() has written between colons.
std::vector<std::string> rate_rules::parts_of(std::string_view bucket) {
  std::vector<std::string> parts(1);
  while (!bucket.empty()) {
    if (bucket.starts_with("%3A")) {
      parts.back() += ':';
      bucket.remove_prefix(3);
    } else if (bucket.starts_with("%25")) {
      parts.back() += '%';
      bucket.remove_prefix(3);
    } else {
      if (bucket.front() == ':') parts.emplace_back();
      if (bucket.front() != ':') parts.back() += bucket.front();
      bucket.remove_prefix(1);
    }
  }
  return parts;
}

}  // namespace holdfast::primitive
