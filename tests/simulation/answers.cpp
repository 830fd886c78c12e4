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

bool sizes_in_use::differ(std::size_t name, std::uint32_t size, nanos since) const {
  return std::any_of(all_.begin(), all_.end(), [&](const auto& one) {
    const bool another = one.first.first == name && one.first.second != size;
    return another && (one.second.threads > 0 || one.second.last >= since);
  });
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
                 std::size_t process) {
  plan rest = p;
  rest.faults.clear();
  nanos last = 0;
  for (const auto& f : p.faults) last = std::max(last, f.at + f.length);
  const bool long_ago = asked > last + 3 * p.longest_lease() + 5 * second;
  const bool well = p.seed >= form_seeds && majority_is_well(p, asked, now, process);
  if (p.seed < unlike_seeds || !rest.only_late_answers(180 * millisecond)) return;
  if (!long_ago && !well) return;
  to.violated("a redlock whose nodes all answer is not unavailable", name);
}

void judge_wait_for_tokens(judge& to, const plan& p, const std::string& name, nanos took,
                           nanos longest) {
  if (!p.only_late_answers(60 * millisecond)) return;
  to.violated("a wait for tokens lasts until those come that are due within its limit",
              name + ": refused after " + std::to_string(took / microsecond) + " us of " +
                  std::to_string(longest / microsecond));
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

}  // namespace simulation
