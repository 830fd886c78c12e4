#include "tool/store_metrics.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "tool/died.hpp"
#include "tool/listed_name.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

using std::chrono::system_clock;

constexpr std::size_t most_groups = 64;
constexpr std::size_t most_elections = 64;

/// The sums over the locks of one kind and group.
struct totals {
  double names = 0;
  double held = 0;
  double waiting = 0;
  double oldest_hold = 0;
  double oldest_wait = 0;
};

double age_of(const participant& p, system_clock::time_point now) {
  return is_known(p.since) ? std::max(0.0, seconds_of(now - p.since)) : 0;
}

double oldest(const std::vector<participant>& all, system_clock::time_point now) {
  double age = 0;
  for (const auto& p : all) age = std::max(age, age_of(p, now));
  return age;
}

void add(totals& to, const name_info& shown, system_clock::time_point now) {
  const name_info n = without_the_dead(shown);
  to.names += 1;
  to.held += static_cast<double>(n.holders.size());
  to.waiting += static_cast<double>(n.waiters.size());
  to.oldest_hold = std::max(to.oldest_hold, oldest(n.holders, now));
  to.oldest_wait = std::max(to.oldest_wait, oldest(n.waiters, now));
}

/// For a store that is away, earlier values are not shown.
bool up(const snapshot& s) { return s.health.reachable; }

/// Of a store that cannot list its names, those that a viewer happened to open say nothing.
bool lists(const snapshot& s) { return up(s) && s.health.note.empty(); }

/// The part before the first ':' or '/', as holdfast::metrics groups by default.
std::string group_of(const std::string& name) {
  return name.substr(0, std::min(name.find_first_of(":/"), name.size()));
}

using key = std::tuple<std::string, std::string, std::string>;  // store, kind, group

/// The greatest groups of a store have series of their own.
std::set<std::string> groups_shown(const snapshot& s) {
  std::map<std::string, std::size_t> sizes;
  for (const auto& n : s.names)
    if (n.error.empty()) ++sizes[group_of(n.info.name)];
  std::vector<std::pair<std::size_t, std::string>> by_size;
  for (const auto& [group, size] : sizes) by_size.emplace_back(size, group);
  std::sort(by_size.rbegin(), by_size.rend());
  if (by_size.size() > most_groups) by_size.resize(most_groups);
  std::set<std::string> shown;
  for (auto& [size, group] : by_size) shown.insert(std::move(group));
  return shown;
}

std::map<key, totals> summed(std::span<const snapshot> stores, system_clock::time_point now) {
  std::map<key, totals> all;
  for (const auto& s : stores) {
    if (!lists(s)) continue;
    const auto shown = groups_shown(s);
    for (const auto& n : s.names) {
      if (!n.error.empty()) continue;
      const std::string group = group_of(n.info.name);
      const std::string& label = shown.contains(group) ? group : "other";
      // An old state may have changed: a name that is often held for a moment would look as if it
      // had been held since a poll long ago.
      const bool just_now = n.looked_at == system_clock::time_point{};
      add(all[{s.store, n.info.kind, label}], n.info, just_now ? now : n.looked_at);
    }
  }
  return all;
}

void write_stores(metrics_text& to, std::span<const snapshot> stores) {
  const auto each = [&](auto value) {
    for (const auto& s : stores) {
      if (const std::optional<double> v = value(s)) to.sample({{"store", s.store}}, *v);
    }
  };
  using maybe = std::optional<double>;
  to.family("holdfast_store_up", metric_type::gauge, "Whether the store answers.");
  each([](const snapshot& s) { return maybe(up(s) ? 1 : 0); });
  to.family("holdfast_store_round_trip_seconds", metric_type::gauge, "One command about one name.");
  each([](const snapshot& s) {
    const auto took = s.health.round_trip;
    return up(s) && took.count() != 0 ? maybe(exact_seconds(took)) : std::nullopt;
  });
  to.family("holdfast_store_scan_seconds", metric_type::gauge,
            "How long the queries for all names took.");
  each([](const snapshot& s) {
    const auto took = s.health.round_asked;
    return lists(s) && took.count() != 0 ? maybe(exact_seconds(took)) : std::nullopt;
  });
  to.family("holdfast_store_unreadable", metric_type::gauge,
            "Names whose entries cannot be read: damaged, newer or foreign, or not permitted.");
  each([](const snapshot& s) {
    const auto bad = std::count_if(s.names.begin(), s.names.end(),
                                   [](const listed_name& n) { return !n.error.empty(); });
    return lists(s) ? maybe(static_cast<double>(bad)) : std::nullopt;
  });
}

void write_locks(metrics_text& to, const std::map<key, totals>& all) {
  const auto each = [&](std::string_view name, std::string_view help, double totals::* value) {
    to.family(name, metric_type::gauge, help);
    for (const auto& [k, t] : all) {
      const auto& [store, kind, group] = k;
      to.sample({{"store", store}, {"kind", kind}, {"group", group}}, t.*value);
    }
  };
  each("holdfast_store_names", "Names in use.", &totals::names);
  each("holdfast_store_held", "Holders of these names.", &totals::held);
  each("holdfast_store_waiting", "Waiters for these names.", &totals::waiting);
  each("holdfast_store_oldest_hold_seconds", "How long the oldest holder has held its lock.",
       &totals::oldest_hold);
  each("holdfast_store_oldest_wait_seconds", "How long the oldest waiter has waited.",
       &totals::oldest_wait);
}

void write_elections(metrics_text& to, std::span<const snapshot> stores) {
  to.family("holdfast_store_leader", metric_type::gauge, "Whether an election has a leader.");
  for (const auto& s : stores) {
    if (!lists(s)) continue;
    std::size_t shown = 0;
    for (const auto& n : s.names) {
      if (n.info.kind != "election" || ++shown > most_elections) continue;
      to.sample({{"store", s.store}, {"election", n.info.name}},
                without_the_dead(n.info).holders.empty() ? 0 : 1);
    }
  }
}

}  // namespace

snapshot look_at_store(const session& s) {
  snapshot found{.store = s.url()};
  const auto began = std::chrono::steady_clock::now();
  try {
    found.names = look_up(s, {});
    found.health.round_asked = std::chrono::steady_clock::now() - began;
  } catch (const error& e) {
    if (e.reason() != errc::unsupported) throw;
    found.health.note = unsigned_message(e.what());
  }
  found.health.reachable = true;
  return found;
}

std::string store_metrics(std::span<const snapshot> stores, system_clock::time_point now,
                          metrics_format format) {
  metrics_text to(format);
  write_stores(to, stores);
  write_locks(to, summed(stores, now));
  write_elections(to, stores);
  return std::move(to).finish();
}

}  // namespace holdfast::tool
