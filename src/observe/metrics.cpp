#include <algorithm>
#include <array>
#include <holdfast/metrics.hpp>
#include <limits>
#include <set>

#include "observe/lock_series.hpp"
#include "observe/store_series.hpp"
#include "observe/timing_store.hpp"

namespace holdfast {

namespace {

using observe::lock_key;
using observe::lock_series;
using observe::reading;
using observe::store_series;

// Used for each event: find_first_of() would compare each letter with a set.
std::string_view group_in(std::string_view name) noexcept {
  std::size_t length = 0;
  while (length < name.size() && name[length] != ':' && name[length] != '/') ++length;
  return name.substr(0, length);
}

/// Visits the results of an acquisition with their histograms.
template <class Visit>
void for_each_result(const lock_series& s, Visit visit) {
  visit("acquired", s.acquired);
  visit("busy", s.busy);
  visit("timeout", s.timed_out);
  visit("cancelled", s.cancelled);
  visit("error", s.failed);
}

template <class Visit>
void for_each_end(const lock_series& s, Visit visit) {
  visit("released", s.released);
  visit("lost", s.lost);
  visit("unknown", s.not_released);
}

using columns = std::vector<std::pair<std::string_view, std::string_view>>;

columns columns_of(const lock_series& s) {
  return {{"store", s.store}, {"kind", s.kind}, {"group", s.group}};
}

columns with(columns c, std::string_view key, std::string_view value) {
  c.emplace_back(key, value);
  return c;
}

// A lease whose release the store did not confirm has ended, too: its holder has given it up.
std::uint64_t ended(const lock_series& s) {
  return reading(s.released).total() + reading(s.not_released).total() + s.leases_lost;
}

// Counts the ended leases first: a lease that begins and ends meanwhile may make the result too
// great, but never too small. Returns the least of a few tries; stops early if nothing has ended
// meanwhile.
double held(const lock_series& s) {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (int tries = 0; tries < 4; ++tries) {
    const auto out = ended(s);
    const auto in = reading(s.acquired).total();
    least = std::min(least, in > out ? in - out : 0);
    if (ended(s) == out) break;
  }
  return static_cast<double>(least);
}

using locks = std::vector<const lock_series*>;

void write_acquired(metrics_sink& to, const locks& all) {
  to.family("holdfast_acquire", metric_type::counter, "Attempts to acquire a lock, by their end.");
  for (const auto* s : all) {
    for_each_result(*s, [&](std::string_view how, const auto& counted) {
      to.sample(with(columns_of(*s), "result", how), static_cast<double>(reading(counted).total()));
    });
  }
  to.family("holdfast_acquire_wait_seconds", metric_type::histogram,
            "How long attempts to acquire a lock took, by their end.");
  for (const auto* s : all) {
    for_each_result(*s, [&](std::string_view how, const auto& counted) {
      const reading now(counted);
      // Avoids a family of zeros for each result.
      if (now.total() == 0 && how != "acquired") return;
      to.histogram(with(columns_of(*s), "result", how), observe::wait_bounds, now.counts, now.sum);
    });
  }
}

void write_held(metrics_sink& to, const locks& all) {
  to.family("holdfast_held", metric_type::gauge, "Leases that this process holds.");
  for (const auto* s : all) to.sample(columns_of(*s), held(*s));
  to.family("holdfast_hold_seconds", metric_type::histogram,
            "How long locks were held, by how that ended.");
  for (const auto* s : all) {
    for_each_end(*s, [&](std::string_view how, const auto& counted) {
      const reading now(counted);
      if (now.total() == 0 && how != "released") return;
      to.histogram(with(columns_of(*s), "end", how), observe::hold_bounds, now.counts, now.sum);
    });
  }
  to.family("holdfast_lost", metric_type::counter, "Locks that were lost while they were held.");
  for (const auto* s : all) {
    for (std::size_t i = 0; i < losses::causes.size(); ++i) {  // from zero on, like the rare events
      to.sample(with(columns_of(*s), "cause", losses::causes[i]),
                static_cast<double>(s->lost_because[i]));
    }
  }
}

using stores = std::vector<std::shared_ptr<const store_series>>;

constexpr std::array rare{event_kind::suspect,        event_kind::held_again,
                          event_kind::release_failed, event_kind::misuse,
                          event_kind::warning,        event_kind::lock_order,
                          event_kind::deadlock,       event_kind::notification_gap};

void write_renewals(metrics_sink& to, const stores& all) {
  to.family("holdfast_renew", metric_type::counter, "Renewals of leases.");
  for (const auto& s : all) {
    to.sample({{"store", s->store}, {"result", "ok"}}, static_cast<double>(s->renewed));
    to.sample({{"store", s->store}, {"result", "error"}}, static_cast<double>(s->renew_failed));
  }
  to.family("holdfast_lease_margin_seconds", metric_type::histogram,
            "What was left of a lease when it had been renewed.");
  for (const auto& s : all) {
    const reading now(s->margin);
    to.histogram(columns{{"store", s->store}}, observe::margin_bounds, now.counts, now.sum);
  }
  to.family("holdfast_process_pause_seconds", metric_type::histogram,
            "By how much the thread that watches leases ran late.");
  for (const auto& s : all) {
    const reading now(s->paused);
    to.histogram(columns{{"store", s->store}}, observe::pause_bounds, now.counts, now.sum);
  }
  to.family("holdfast_events", metric_type::counter, "Other events, by their kind.");
  for (const auto& s : all) {
    const std::lock_guard guard{s->mutex};
    for (const auto kind : rare) {  // from zero on: an alert notices the first one
      const auto n = s->events.find(kind);
      to.sample({{"store", s->store}, {"event", to_string(kind)}},
                n == s->events.end() ? 0 : static_cast<double>(n->second));
    }
  }
}

void write_operations(metrics_sink& to, const stores& all) {
  to.family("holdfast_store_op_seconds", metric_type::histogram,
            "How long operations at the store took.");
  for (const auto& s : all) {
    for (std::size_t i = 0; i < observe::operations; ++i) {
      const reading now(s->took[i]);
      if (now.total() == 0) continue;
      const auto op = to_string(static_cast<observe::operation>(i));
      to.histogram(columns{{"store", s->store}, {"op", op}}, observe::operation_bounds, now.counts,
                   now.sum);
    }
  }
  to.family("holdfast_store_errors", metric_type::counter, "Operations at the store that failed.");
  for (const auto& s : all) {
    const std::lock_guard guard{s->mutex};
    for (const auto& [what, n] : s->errors) {
      const auto why = observe::word_of(what.second);
      to.sample({{"store", s->store}, {"op", to_string(what.first)}, {"error", why}},
                static_cast<double>(n));
    }
  }
}

}  // namespace

struct metrics::state {
  explicit state(metrics_options o)
      : options(std::move(o)),
        always(options.always.begin(), options.always.end()),
        full(options.max_groups == 0) {}

  // A group beyond the limit is counted as "other", from its first event on.
  std::string_view group_of(std::string_view name) {
    if (!always.empty() && always.contains(name)) return name;
    return options.group ? options.group(name) : group_in(name);
  }

  [[gnu::always_inline]] lock_series& at(const event& e) {
    // Never that of this table, if options.group is called for each event.
    const bool known = last.is_of(locks.id(), e.store, e.lock_kind, e.name);
    return known ? *last.series : find_and_keep(e);
  }

  [[gnu::noinline]] lock_series& find_and_keep(const event& e) {
    lock_series& found = find(e);
    if (!options.group) last.set(locks.id(), found, e.name);
    return found;
  }

  lock_series& find(const event& e) {
    lock_key key{e.store, e.lock_kind, group_of(e.name)};
    if (auto* const there = locks.find(key)) return *there;
    if (!admits(key.group)) key.group = "other";
    if (auto* const there = locks.find(key)) return *there;
    return first(key);
  }

  // Creates the store's series as well, which then begin at zero: an alert notices the first event.
  lock_series& first(const lock_key& key) {
    (void)stores.at(key.store);
    return locks.at(key);
  }

  // A full set never changes again, so it is read without the mutex.
  bool admits(std::string_view group) {
    if (always.contains(group)) return true;
    if (full.load(std::memory_order_acquire)) return groups.contains(group);
    const std::lock_guard guard{mutex};
    if (groups.contains(group)) return true;
    if (groups.size() >= options.max_groups) return false;
    groups.emplace(group);
    full.store(groups.size() >= options.max_groups, std::memory_order_release);
    return true;
  }

  [[gnu::noinline]] void on_rare_event(const event& what);

  void gave_up(const event& e) {
    auto& s = at(e);
    if (e.code == errc::timed_out) return s.timed_out.add(e.waited);
    if (e.code == errc::cancelled) return s.cancelled.add(e.waited);
    s.failed.add(e.waited);
  }

  void lost(const event& e) {
    if (e.leases == 0) return;  // it lingered, and no thread held it
    auto& s = at(e);
    s.lost.add(e.held);
    observe::add(s.leases_lost, e.leases);
    observe::add(s.lost_because[losses::cause_of(e.detail)]);
  }

  void renewed(const event& e) {
    const auto s = stores.at(e.store);
    observe::add(s->renewed);
    if (e.margin > std::chrono::nanoseconds::zero()) s->margin.add(e.margin);
  }

  static constinit thread_local observe::recent_series last;
  const metrics_options options;
  const std::set<std::string, std::less<>> always;
  observe::lock_table locks;
  observe::store_table stores;
  std::mutex mutex;
  std::set<std::string, std::less<>> groups;
  std::atomic<bool> full;
};

constinit thread_local observe::recent_series metrics::state::last;

metrics::metrics(metrics_options options) : state_(std::make_shared<state>(std::move(options))) {}
metrics::~metrics() = default;

// Each use of a lock has the first two, so they are counted with as little work as possible.
void metrics::on_event(const event& what) {
  auto& s = *state_;
  if (what.kind == event_kind::acquired) return s.at(what).acquired.add(what.waited);
  if (what.kind == event_kind::released) return s.at(what).released.add(what.held);
  s.on_rare_event(what);
}

void metrics::state::on_rare_event(const event& what) {
  switch (what.kind) {
    case event_kind::busy:
      return at(what).busy.add(what.waited);
    case event_kind::gave_up:
      return gave_up(what);
    case event_kind::lost:
      return lost(what);
    case event_kind::renewed:
      return renewed(what);
    case event_kind::held_again:
      renewed(what);
      break;
    case event_kind::renew_failed:
      return observe::add(stores.at(what.store)->renew_failed);
    case event_kind::release_failed:
      if (what.leases > 0) at(what).not_released.add(what.held);
      break;
    case event_kind::paused:
      return stores.at(what.store)->paused.add(what.waited);
    case event_kind::acquired:
    case event_kind::released:
    case event_kind::notification_gap:
    case event_kind::suspect:
    case event_kind::misuse:
    case event_kind::warning:
    case event_kind::lock_order:
    case event_kind::deadlock:
      break;
  }
  stores.at(what.store)->happened(what.kind);
}

std::function<std::unique_ptr<store::session_store>(std::unique_ptr<store::session_store>)>
metrics::timer() const {
  return [to = state_](std::unique_ptr<store::session_store> inner) {
    auto series = to->stores.at(inner->url());
    return observe::timing(std::move(inner), std::move(series));
  };
}

void metrics::preregister(std::string_view store_url, std::string_view lock_kind,
                          std::string_view group) {
  const bool has_its_own = state_->admits(group);
  (void)state_->first({store_url, lock_kind, has_its_own ? group : "other"});
}

void metrics::write(metrics_sink& to) const {
  const auto of_locks = state_->locks.all();
  const auto of_stores = state_->stores.all();
  to.family("holdfast_build", metric_type::info, "The version of the library.");
  to.sample({{"version", HOLDFAST_VERSION}}, 1);
  write_acquired(to, of_locks);
  write_held(to, of_locks);
  write_renewals(to, of_stores);
  write_operations(to, of_stores);
}

std::string metrics::text(metrics_format format) const {
  metrics_text to(format);
  write(to);
  return std::move(to).finish();
}

}  // namespace holdfast
