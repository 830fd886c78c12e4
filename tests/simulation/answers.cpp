#include "simulation/answers.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <vector>

#include "simulation/encounters.hpp"

namespace simulation {

void sizes_in_use::uses(std::size_t name, std::uint32_t size, bool so, nanos now) {
  auto& one = all_[{name, size}];
  one.threads += so ? 1 : -1;
  if (one.threads == 0) one.last = now;
}

template <class Differs>
bool sizes_in_use::any(std::size_t name, nanos since, Differs differs) const {
  return std::any_of(all_.begin(), all_.end(), [&](const auto& one) {
    const bool another = one.first.first == name && differs(one.first.second);
    return another && (one.second.threads > 0 || one.second.last >= since);
  });
}

bool sizes_in_use::differ(std::size_t name, std::uint32_t size, nanos since) const {
  return any(name, since, [&](auto other) { return other != size && other != another_kind; });
}

bool sizes_in_use::clash(std::size_t name, std::uint32_t size, nanos since) const {
  return any(name, since,
             [&](auto other) { return (other == another_kind) != (size == another_kind); });
}

// The session repeats what was lost once.
void judge_what_was_lost(judge& to, const plan& p, std::uint32_t lost, const std::string& left) {
  plan rest = p;
  rest.network.lose_request = rest.network.lose_reply = 0;
  const bool only_lost =
      rest.calm() && rest.machine.slow_permille == 0 && p.command_timeout <= 300 * millisecond;
  const bool shows_all = p.store < store_kind::contenders && p.others.empty();
  if (lost > 1 || !only_lost || !shows_all) return;
  to.violated("a session that closes repeats a release that was lost", left);
}

namespace {

// Whether most nodes were well during that call, and had been for a moment before it.
bool majority_is_well(const plan& p, nanos from, nanos to, std::size_t process) {
  using kind = fault_plan::kind;
  std::vector<bool> well(1 + p.others.size(), true);
  for (const auto& f : p.faults) {
    const bool of_a_node = f.what == kind::freeze || f.what == kind::restart;
    if (!of_a_node && f.what != kind::cut) return false;
    const bool meant = of_a_node || f.process == process;
    if (meant && f.at <= to && f.at + f.length + second / 2 >= from) well[f.store] = false;
  }
  return 2 * std::count(well.begin(), well.end(), true) > std::ssize(well);
}

}  // namespace

// Each answer comes before a node counts as one that does not answer, and all outages were long
// ago, or concern too few nodes.
void judge_nodes(judge& to, const plan& p, const std::string& name, nanos asked, nanos now,
                 std::size_t process, nanos wait) {
  plan rest = p;
  rest.faults.clear();
  nanos last = 0;
  for (const auto& f : p.faults) last = std::max(last, f.at + f.length);
  const bool long_ago = asked > last + 3 * p.longest_lease() + 5 * second;
  const bool well = p.seed >= form_seeds && majority_is_well(p, asked, now, process);
  // A request may wait for the late answer to the one before it.
  const nanos most = (p.seed < refusing_seeds ? 180 : 90) * millisecond;
  if (p.seed < unlike_seeds || !rest.only_late_answers(most)) return;
  if (!long_ago && !well) return;
  // Each node has its share of the limit, and its answer may come later than that.
  const nanos share = wait / static_cast<nanos>(1 + p.others.size());
  const bool limited = wait > 0 && wait != never;
  if (limited && p.network.slow_reply > 0 && share <= p.network.slowest_late + millisecond) return;
  to.violated("a redlock whose nodes all answer is not unavailable", name);
}

void judge_wait_for_tokens(judge& to, const plan& p, const std::string& name, nanos took,
                           nanos longest) {
  if (!p.only_late_answers(60 * millisecond)) return;
  to.violated("a wait for tokens lasts until those come that are due within its limit",
              name + ": refused after " + std::to_string(took / microsecond) + " us of " +
                  std::to_string(longest / microsecond));
}

// The store has answered the first request of the wait, and fell silent later, for so short a time
// that no request has failed, not even one that was on its way to the store then.
void judge_silence(judge& to, const plan& p, const std::string& name, nanos asked, nanos now) {
  plan rest = p;
  rest.faults.clear();
  const bool only_silent = rest.calm() && rest.machine.slow_permille == 0 && p.others.empty() &&
                           p.store < store_kind::contenders;
  int silences = 0;
  for (const auto& f : p.faults) {
    const bool before = f.at + f.length < asked - 100 * millisecond;
    const bool falls =
        f.at >= asked + 150 * millisecond && now < f.at + p.command_timeout - 10 * millisecond;
    if (f.what != fault_plan::kind::freeze) return;
    if (before || f.at > now) continue;
    if (!falls || now >= f.at + f.length) return;
    ++silences;
  }
  if (!only_silent || silences != 1) return;
  to.violated("a wait that the store has answered is not unavailable for its last request",
              name + ": after " + std::to_string((now - asked) / millisecond) + " ms");
}

// The store's clock may run faster than that of the process.
void judge_take(judge& to, const std::string& name, nanos took, nanos due) {
  if (took + millisecond + due / 100 >= due) return;
  to.violated("a take that says that it took has waited for its tokens",
              name + ": " + std::to_string(took / microsecond) + " us of " +
                  std::to_string(due / microsecond));
}

// The buckets are shown exactly if they were what was missing last.
void judge_reason(judge& to, const std::string& name, const holdfast::admitted& refused) {
  const bool tokens = refused.why == holdfast::refused_by::tokens;
  const bool none = refused.rate.rules.empty();
  const bool shown = !none && refused.rate.wait > std::chrono::seconds(0);
  if (tokens ? shown : none) return;
  to.violated("a refused admission says what was missing last",
              name + ": " + (tokens ? "tokens, and shows none" : "permits, and shows tokens"));
}

// Of a semaphore, what is held and what is free add up.
void judge_what_is_shown(judge& to, const plan& p, const std::string& name, std::uint32_t permits,
                         const holdfast::name_info& shows) {
  std::uint64_t held = 0;
  const std::chrono::nanoseconds longest(2 * p.longest_lease());
  bool right = shows.name == name && !shows.holders.empty();
  std::string all;
  for (const auto& h : shows.holders) {
    const auto process = static_cast<std::size_t>(h.pid) - 1001;
    right = right && process < p.processes.size() && h.short_id.size() == 8;
    right = right && (!h.expires_in || *h.expires_in <= longest);
    held += h.weight;
    all += " P" + std::to_string(h.pid - 1000) + " weight " + std::to_string(h.weight) + " for " +
           std::to_string(h.expires_in.value_or(std::chrono::milliseconds(-1)).count()) + " ms";
  }
  for (const auto& w : shows.waiters) right = right && w.fence == 0 && w.short_id.size() == 8;
  if (permits > 0) {
    right = right && shows.capacity == permits && shows.remaining + held == permits;
    right = right && shows.kind == "semaphore";
  }
  if (right) return;
  to.violated("what is shown of a name adds up",
              shows.kind + " " + shows.name + ": " + std::to_string(shows.remaining) + " of " +
                  std::to_string(shows.capacity) + " are free;" + all);
}

void judge_holders_shown(judge& to, const holdfast::name_info& shows) {
  std::uint64_t together = 0;
  for (const auto& h : shows.holders) together += h.weight;
  if (together <= shows.capacity || shows.holders.size() < 2) return;
  to.violated("holders that are shown together fit together",
              shows.kind + " " + shows.name + ": " + std::to_string(shows.holders.size()) +
                  " holders with " + std::to_string(together) + " of " +
                  std::to_string(shows.capacity));
}

// A full one is not listed.
void judge_bucket(judge& to, const std::string& name, const holdfast::rate_bucket* listed,
                  std::uint64_t burst, std::uint64_t before, std::uint64_t after) {
  const auto shown = listed == nullptr ? burst : listed->remaining;
  const bool right = listed == nullptr ? after == burst
                                       : shown >= before && shown <= after &&
                                             listed->limit == burst && listed->error.empty();
  if (right) return;
  to.violated("a bucket is listed as it is",
              name + ": " + std::to_string(shown) + " tokens, from " + std::to_string(before) +
                  " to " + std::to_string(after) + " of " + std::to_string(burst));
}

// One waits at the store, or the lock is on its way to it, and max_waiters wait behind it.
void judge_crowd(judge& to, const std::string& name, int process, std::size_t wait,
                 std::size_t most) {
  if (most == 0 || wait <= most + 1) return;
  to.violated("no more threads of a process wait than max_waiters says",
              "P" + std::to_string(process) + ": " + std::to_string(wait) + " at " + name);
}

// It may have been renewed, or it may have ended, between two of these calls.
void judge_time(judge& to, const std::string& name, std::chrono::nanoseconds before,
                holdfast::lease_state so, std::chrono::nanoseconds after) {
  const bool counts = so == holdfast::lease_state::held || so == holdfast::lease_state::suspect;
  const std::chrono::nanoseconds none{};
  if (counts && before <= none && after <= none)
    to.violated("a lease whose time is over is lost", name);
}

void judge_given_back(judge& to, const std::string& name, std::uint64_t before, std::uint64_t n,
                      std::uint64_t burst, std::uint64_t after) {
  const auto least = std::min(before + n, burst);
  if (after >= least) return;
  to.violated("tokens that are given back are there again",
              name + ": " + std::to_string(after) + " instead of " + std::to_string(least));
}

void judge_votes(judge& to, const std::string& name, const std::vector<holdfast::vote>& votes,
                 std::size_t nodes) {
  const auto granted = std::count(votes.begin(), votes.end(), holdfast::vote::granted);
  if (votes.size() == nodes && 2 * static_cast<std::size_t>(granted) > nodes) return;
  to.violated("a redlock is held by a majority",
              name + ": " + std::to_string(granted) + " of " + std::to_string(nodes));
}

// What is at a node that had not granted this lease is of an earlier one.
void judge_rest_of_a_redlock(judge& to, const std::string& what,
                             const std::vector<holdfast::vote>& had,
                             const std::vector<bool>& left) {
  std::size_t its = 0;
  for (std::size_t i = 0; i < left.size(); ++i)
    its += left[i] && had.at(i) == holdfast::vote::granted ? 1U : 0U;
  if (2 * its >= left.size())
    to.violated("a redlock that is released is held by no majority", what);
}

// Some answers come later than node_timeout.
void judge_lost_redlock(judge& to, const plan& p, const std::string& name) {
  const bool in_time = p.seed >= form_seeds && p.renews() &&
                       p.only_late_answers(p.longest_lease() / 8) &&
                       p.machine.preempt_permille == 0;
  if (in_time) to.violated("a redlock whose nodes answer in time is not lost", name);
}

}  // namespace simulation
