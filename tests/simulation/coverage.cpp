#include "simulation/coverage.hpp"

#include <cstddef>

#include "simulation/barrier_actor.hpp"
#include "simulation/permit_actor.hpp"
#include "simulation/rate_actor.hpp"

namespace simulation {

namespace {

constexpr const char* trouble_names[trouble_count] = {
    "lost request", "lost reply",       "slow request",     "slow reply", "slow notice",
    "cut",          "restart",          "data lost",        "freeze",     "pause",
    "stall",        "death of another", "evicted",          "suspend",    "full",
    "read only",    "name dropped",     "step of the clock"};

constexpr const char* kind_names[] = {
    "mutex", "fair_mutex", "recursive_mutex",    "shared_mutex", "semaphore", "counting_semaphore",
    "latch", "barrier",    "condition_variable", "rate_limiter", "election",  "admission",
    "both",  "redlock",    "expiring_semaphore"};

std::string form_of(const step& s) {
  if (s.wait == 0) return " try";
  return s.wait == never ? " wait" : " timed wait";
}

std::string deed_at_a_barrier(const plan& p, const process_plan& of, const step& s) {
  if (p.about != theme::barriers) return s.deed == 7 ? " arrive_and_drop" : " arrive, wait_for";
  return ' ' + std::string(word_of(how_to_meet(of, s)));
}

std::string deed_of(const plan& p, const process_plan& of, const step& s) {
  const auto kind = p.names[s.name].kind;
  switch (kind) {
    case lock_kind::latch:
      return s.deed < 3    ? " count_down"
             : s.deed == 3 ? " try_wait"
             : s.deed == 4 ? " remaining"
                           : " wait_for";
    case lock_kind::barrier:
      return deed_at_a_barrier(p, of, s);
    case lock_kind::condition:
      return s.deed < 2 ? " notify_one" : s.deed < 4 ? " notify_all" : " wait_for";
    case lock_kind::limiter:
      return word_of_rates(p, s);
    case lock_kind::expiring:
      return word_of_permits(s) + (s.deed < 3 ? form_of(s) : std::string());
    case lock_kind::election:
      return s.deed < 6 ? " campaign" : s.deed == 6 ? " current" : " observe";
    case lock_kind::admission:
      return s.deed < 4 ? " try_admit" : " admit_for";
    default:
      return form_of(s);
  }
}

// A redlock votes again after a while, tokens come back with time, and a query does not wait: the
// store notifies none of these.
bool is_told(const std::string& operation) {
  const bool by_id = operation.starts_with("expiring_semaphore") &&
                     operation.find(" acquire ") == std::string::npos;
  return !by_id && !operation.starts_with("redlock") && !operation.starts_with("rate_limiter") &&
         !operation.ends_with("try_wait") && !operation.ends_with("remaining");
}

bool possible(store_kind on, const std::string& operation, trouble t) {
  const bool silent =
      on == store_kind::untold || on == store_kind::slots || on >= store_kind::mariadb;
  if (t == trouble::slow_notification) return !silent && is_told(operation);
  if (t == trouble::data_lost) return on != store_kind::contenders;
  if (on == store_kind::memcached && t == trouble::restart) return false;  // it loses its data
  if (on == store_kind::memcached && (t == trouble::full || t == trouble::key_lost)) return true;
  if (on == store_kind::advisory && t == trouble::restart) return false;  // it loses its locks
  if (t == trouble::read_only && on >= store_kind::postgres) return on < store_kind::memcached;
  if (t > trouble::evicted) {
    const bool of_a_lock = operation.find(" lease ") != std::string::npos ||
                           operation.find(" std ") != std::string::npos;
    const bool writes = on != store_kind::contenders || t == trouble::suspended;
    return of_a_lock && writes && on < store_kind::slots;
  }
  if (t == trouble::evicted) {
    return operation.starts_with("barrier") || operation.starts_with("expiring_semaphore");
  }
  return true;
}

}  // namespace

std::vector<std::string> operations_of(const plan& p, const process_plan& of, const step& s) {
  static constexpr const char* styles[] = {" lease", " std", " async"};
  static constexpr const char* insides[] = {
      "",          "extend",     "extend to more", "async_extend",        "upgrade",
      "downgrade", "lock again", "extend to less", "async_extend to more"};
  static constexpr const char* async_ends[] = {"dropped",   "async_release", "asked again",
                                               "lock kept", "async_extend",  "lease kept",
                                               "co_await"};
  const auto kind = p.names[s.name].kind;
  const std::string name =
      std::string(kind_names[static_cast<int>(kind)]) + (s.shared ? " shared" : "");
  if (p.about == theme::endings) {
    return {name + " async" + form_of(s), std::string("callback, ") + async_ends[s.deed % 7]};
  }
  if (p.about == theme::deadlocks) return {name + " and others inside" + form_of(s)};
  const std::string form = kind >= lock_kind::latch && without_waiting(p, s) ? " async" : "";
  if (kind >= lock_kind::latch) return {name + form + deed_of(p, of, s)};
  if (s.several) return {"multi_lock" + form_of(s)};
  std::vector<std::string> all{name + styles[static_cast<int>(s.how)] + form_of(s)};
  if (s.what != step::inside::nothing) all.emplace_back(insides[static_cast<int>(s.what)]);
  return all;
}

void coverage::add(store_kind on, const meetings_of_a_run& met) {
  for (const auto& [operation, troubles] : met) {
    auto& to = met_[on][operation];
    for (std::size_t i = 0; i < trouble_count; ++i) to[i] += (troubles >> i) & 1U;
  }
}

std::string coverage::text() const {
  std::size_t pairs = 0;
  std::size_t met = 0;
  std::string never;
  for (const auto& [on, operations] : met_) {
    for (const auto& [operation, row] : operations) {
      std::string missing;
      for (std::size_t i = 0; i < trouble_count; ++i) {
        if (!possible(on, operation, static_cast<trouble>(i))) continue;
        ++pairs;
        met += row[i] > 0 ? 1 : 0;
        if (row[i] == 0) missing += (missing.empty() ? "" : ", ") + std::string(trouble_names[i]);
      }
      if (!missing.empty())
        never += "  " + operation + ", " + std::string(to_string(on)) + ": " + missing + "\n";
    }
  }
  return std::to_string(met) + " of " + std::to_string(pairs) +
         " pairs of an operation and a trouble have met" +
         (never.empty() ? "" : "; never:\n" + never);
}

}  // namespace simulation
