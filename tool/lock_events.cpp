#include "tool/lock_events.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "tool/died.hpp"
#include "tool/duration.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

const participant* found_among(const std::vector<participant>& all, const participant& p) {
  const auto same = [&](const participant& other) {
    return other.short_id == p.short_id && other.pid == p.pid && other.host == p.host;
  };
  const auto at = std::find_if(all.begin(), all.end(), same);
  return at == all.end() ? nullptr : &*at;
}

/// Those of `all` that are not among `others`.
std::vector<participant> those_not_in(const std::vector<participant>& all,
                                      const std::vector<participant>& others) {
  std::vector<participant> left;
  for (const participant& p : all)
    if (!found_among(others, p)) left.push_back(p);
  return left;
}

std::string participant_name(const participant& p) {
  std::string name = p.host.empty() ? "another program" : printable(p.host);
  if (p.pid != 0) name += " pid " + std::to_string(p.pid);
  const std::string& what = p.reason.empty() ? p.program : p.reason;
  if (!what.empty()) name += " (" + printable(what) + ')';
  return name;
}

std::string duration_phrase(const char* what, const participant& p,
                            std::chrono::system_clock::time_point until) {
  if (!is_known(p.since)) return {};
  return std::string(", ") + what + ' ' + format_duration(until - p.since);
}

std::string fence_phrase(const participant& p) {
  return p.fence == 0 ? std::string{} : ", fence " + std::to_string(p.fence);
}

}  // namespace

std::string_view to_string(lock_event_kind k) noexcept {
  constexpr std::array<std::string_view, 8> names{"granted", "released", "hand-over", "lost",
                                                  "joined",  "left",     "holding",   "waiting"};
  return names.at(static_cast<std::size_t>(k));
}

void leases_seen::note(const std::vector<participant>& holders) {
  std::vector<participant> now = holders;
  for (participant& p : now) {
    const participant* const earlier = found_among(longest_, p);
    if (earlier) p.expires_in = std::max(p.expires_in, earlier->expires_in);
  }
  longest_ = std::move(now);
}

bool leases_seen::is_overdue(const participant& p) const {
  const participant* const longest = found_among(longest_, p);
  return longest && p.expires_in && *p.expires_in * 2 < *longest->expires_in;
}

std::vector<lock_event> events_between(const name_info& before, const name_info& now,
                                       std::chrono::nanoseconds since_last,
                                       const leases_seen& leases) {
  std::vector<lock_event> events;
  const name_info living = without_the_dead(now);
  const name_info lived = without_the_dead(before);
  auto gone = those_not_in(lived.holders, living.holders);
  auto come = those_not_in(living.holders, lived.holders);
  for (participant& p : gone) {
    const participant* const still_shown = found_among(now.holders, p);
    p.died = still_shown != nullptr && still_shown->died;
  }
  const auto ran_out = [&](const participant& p) {
    return p.died || (leases.is_overdue(p) && *p.expires_in <= since_last);
  };
  const bool exclusive = gone.size() == 1 && come.size() == 1 && living.holders.size() == 1;
  if (exclusive && !ran_out(gone.front())) {
    events.push_back({lock_event_kind::handover, come.front(), gone.front()});
    gone.clear();
    come.clear();
  }
  for (const participant& p : gone)
    events.push_back({ran_out(p) ? lock_event_kind::lost : lock_event_kind::released, p});
  for (const participant& p : come) events.push_back({lock_event_kind::granted, p});
  for (const participant& p : those_not_in(lived.waiters, living.waiters))
    if (!found_among(living.holders, p)) events.push_back({lock_event_kind::left, p});
  for (const participant& p : those_not_in(living.waiters, lived.waiters))
    events.push_back({lock_event_kind::joined, p});
  return events;
}

std::vector<lock_event> events_at_start(const name_info& now) {
  std::vector<lock_event> events;
  const name_info living = without_the_dead(now);
  for (const participant& p : living.holders) events.push_back({lock_event_kind::holding, p});
  for (const participant& p : living.waiters) events.push_back({lock_event_kind::waiting, p});
  return events;
}

std::string event_text(const lock_event& e, std::chrono::system_clock::time_point now) {
  std::string line = rfc3339(now) + ' ' + padded(std::string(to_string(e.kind)), 10);
  switch (e.kind) {
    case lock_event_kind::granted:
      line += participant_name(e.who) + fence_phrase(e.who);
      break;
    case lock_event_kind::handover:
      line += participant_name(e.before) + duration_phrase("held", e.before, now) + " -> " +
              participant_name(e.who) + fence_phrase(e.who);
      break;
    case lock_event_kind::released:
    case lock_event_kind::lost:
      line += participant_name(e.who) + duration_phrase("held", e.who, now);
      if (e.who.died) line += ", died";
      break;
    case lock_event_kind::joined:
      line += participant_name(e.who);
      break;
    case lock_event_kind::holding:
      line += participant_name(e.who) + duration_phrase("held", e.who, now) + fence_phrase(e.who);
      break;
    case lock_event_kind::left:
    case lock_event_kind::waiting:
      line += participant_name(e.who) + duration_phrase("waited", e.who, now);
      break;
  }
  return line + '\n';
}

}  // namespace holdfast::tool
