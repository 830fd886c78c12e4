#include "tool/survey/history.hpp"

#include <algorithm>
#include <unordered_map>

#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

using std::chrono::milliseconds;

bool same_hold(const participant& a, const participant& b) {
  return a.short_id == b.short_id && a.fence == b.fence;
}

bool has(const std::vector<participant>& all, const participant& one) {
  return std::any_of(all.begin(), all.end(), [&](const auto& p) { return same_hold(p, one); });
}

const participant* waiting_before(const name_info& before, const participant& holder) {
  for (const auto& w : before.waiters)
    if (w.short_id == holder.short_id) return &w;
  return nullptr;
}

milliseconds between(std::chrono::system_clock::time_point from,
                     std::chrono::system_clock::time_point to) {
  return std::max(milliseconds{0}, std::chrono::duration_cast<milliseconds>(to - from));
}

}  // namespace

std::string_view to_string(hold_change::what w) noexcept {
  return w == hold_change::what::taken ? "taken" : "given_up";
}

void durations::add(milliseconds length) {
  const double seconds = std::chrono::duration<double>(length).count();
  const auto at = std::lower_bound(bounds.begin(), bounds.end(), seconds) - bounds.begin();
  ++buckets_[static_cast<std::size_t>(at)];
  ++count_;
  seconds_ += seconds;
}

void history::keep(hold_change change) {
  if (changes_.size() == max_kept) changes_.pop_front();
  changes_.push_back(std::move(change));
}

void history::note(const name_info& before, const name_info& after,
                   std::chrono::system_clock::time_point now) {
  // The next holder began when the one before ended: that time is more precise than the poll's.
  auto ended = now;
  for (const participant& h : after.holders)
    if (is_known(h.since) && !has(before.holders, h)) ended = std::min(ended, h.since);
  for (const participant& h : before.holders) {
    if (has(after.holders, h)) continue;
    hold_change c{hold_change::what::given_up, ended, after.name, h};
    c.held_known = is_known(h.since);
    if (c.held_known) c.length = between(h.since, ended);
    keep(std::move(c));
  }
  for (const participant& h : after.holders) {
    if (has(before.holders, h)) continue;
    hold_change c{hold_change::what::taken, is_known(h.since) ? h.since : now, after.name, h};
    const participant* queued = waiting_before(before, h);
    c.waited_known = queued != nullptr && is_known(queued->since);
    if (c.waited_known) c.length = between(queued->since, c.at);
    keep(std::move(c));
  }
}

history::of_name history::about(std::string_view lock) const {
  of_name found;
  for (auto c = changes_.rbegin(); c != changes_.rend(); ++c) {
    if (c->lock != lock) continue;
    if (found.changes.size() < max_shown) found.changes.push_back(*c);
    if (c->held_known) found.held.add(c->length);
    if (c->waited_known) found.waited.add(c->length);
  }
  return found;
}

std::vector<std::pair<std::string, std::uint64_t>> history::busiest(std::size_t most) const {
  std::unordered_map<std::string_view, std::uint64_t> times;
  for (const auto& c : changes_)
    if (c.happened == hold_change::what::taken) ++times[c.lock];
  std::vector<std::pair<std::string, std::uint64_t>> all(times.begin(), times.end());
  const auto busier = [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  };
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(most, all.size()));
  std::partial_sort(all.begin(), end, all.end(), busier);
  all.erase(end, all.end());
  return all;
}

}  // namespace holdfast::tool
