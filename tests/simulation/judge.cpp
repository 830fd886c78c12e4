#include "simulation/judge.hpp"

#include <algorithm>
#include <cstdio>

namespace simulation {

namespace {

std::string milliseconds(nanos t) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f ms", static_cast<double>(t) / 1e6);
  return text;
}

}  // namespace

std::vector<std::string>& judge::ignored() {
  static std::vector<std::string> all;
  return all;
}

void judge::violated(std::string rule, std::string what) {
  what = where_ + what;
  for (const auto& known : ignored()) {
    if ((rule + ": " + what).find(known) != std::string::npos) return;
  }
  trace_.add("VIOLATED: " + rule + ": " + what);
  if (!found_) found_ = verdict{std::move(rule), std::move(what)};
  world_.stop();
}

std::string judge::describe(const hold& h) const {
  return h.who + " has " + h.g.name + " weight " + std::to_string(h.g.weight) + "/" +
         std::to_string(h.g.capacity) + " fence " + std::to_string(h.g.fence) + " from " +
         milliseconds(h.first) + " to " + milliseconds(h.last);
}

judge::hold* judge::find(int id) {
  const auto at =
      std::find_if(holds_.begin(), holds_.end(), [&](const hold& h) { return h.id == id; });
  return at == holds_.end() ? nullptr : &*at;
}

int judge::granted(grant g, nanos then) {
  ++grants_;
  const fiber* const me = world::self();
  std::string who = "P" + std::to_string(g.of->number) + "." + (me == nullptr ? "" : me->name);
  if (trace_.on()) {
    trace_.add("HOLDS " + g.name + " weight " + std::to_string(g.weight) + " fence " +
               std::to_string(g.fence));
  }
  holds_.push_back({++last_id_, std::move(g), then, then, true, std::move(who), me});
  has_ended(holds_.back());
  holds_.back().lost = was_forgotten(holds_.back());
  const hold mine = holds_.back();
  check_capacity(mine);
  check_room(mine);
  check_fence(mine);
  check_told(mine);
  forget_old();
  return mine.id;
}

void judge::still_held(int id, nanos then) {
  hold* const mine = find(id);
  if (mine == nullptr || !mine->open) return;
  mine->last = std::max(mine->last, then);
  const process& p = *mine->g.of;
  const bool runs = p.steady_since <= mine->first && p.paused_until < then;
  if (then > mine->told_by && (runs || mine->without_excuse)) {
    return violated("the holder learns in time that the store has ended its hold", describe(*mine));
  }
  const hold copy = *mine;
  check_room(copy);
}

void judge::changed(int id, std::uint32_t weight, std::uint64_t fence, nanos then) {
  hold* const mine = find(id);
  if (mine == nullptr || !mine->open) return;
  if (trace_.on()) {
    trace_.add("HOLDS " + mine->g.name + " now with weight " + std::to_string(weight) + " fence " +
               std::to_string(fence));
  }
  const hold before = *mine;
  mine->g.weight = weight;
  mine->g.fence = fence;
  mine->first = mine->last = then;
  hold past_one = before;
  past_one.open = false;
  past_one.id = -before.id;
  const hold now = *mine;
  holds_.push_back(past_one);
  check_room(now);
  if (fence != before.g.fence || weight > before.g.weight) check_fence(now);
}

void judge::given_up(int id) {
  if (hold* const mine = find(id)) mine->open = mine->aside = false;
}

void judge::put_aside(int id) {
  given_up(id);
  if (hold* const mine = find(id)) mine->aside = true;
}

void judge::kept(int id, nanos then) {
  if (hold* const mine = find(id)) mine->open = true, mine->aside = false;
  still_held(id, then);
}

void judge::given_up_by(const fiber* who) {
  for (auto& h : holds_) {
    if (h.by == who && !h.g.outlives_process) h.open = h.aside = false;
  }
}

void judge::died(const process& of) {
  for (auto& h : holds_) {
    if (h.g.of == &of && !h.g.outlives_process) h.open = h.aside = false;
  }
}

void judge::forgot(nanos until, nanos told_by) {
  lost_until_ = std::max(lost_until_, until);
  forgot_at_ = std::max(forgot_at_, told_by);
  for (auto& h : holds_) h.lost = true;
}

// The store may have granted it before it lost its data, or a thread of the same process handed
// such a grant over.
bool judge::was_forgotten(const hold& h) const {
  if (h.g.asked <= lost_until_) return true;
  return std::any_of(holds_.begin(), holds_.end(), [&](const hold& o) {
    if (!o.lost || o.g.of != h.g.of || o.g.name != h.g.name) return false;
    return o.open || o.last + second >= h.g.asked || h.g.of->steady_since > o.last;
  });
}

void judge::connection_ended(std::int64_t granted_at, nanos told_by, bool without_excuse) {
  std::erase_if(ends_, [&](const auto& e) { return e.at + 60 * second < world_.now(); });
  ends_.push_back({granted_at, world_.now(), told_by, {}, 0, world_.now(), 0, without_excuse});
  for (auto& h : holds_) has_ended(h);
}

int judge::taken_away(const std::string& name, int from, std::uint64_t fence) {
  taken_.insert(name);
  ++takes_;
  ends_.push_back({static_cast<std::int64_t>(fence / 4096), world_.now(), never, name, from, never,
                   ++last_id_});
  for (auto& h : holds_) has_ended(h);
  return last_id_;
}

void judge::taken(int which) {
  for (auto& e : ends_) {
    if (e.id == which) e.until = world_.now();
  }
}

void judge::has_taken(int which) {
  for (auto& e : ends_) e.certain = e.certain || e.id == which;
}

bool judge::was_certainly_taken(int id) {
  const hold* const mine = find(id);
  if (mine == nullptr || mine->g.fence == 0) return false;
  return std::any_of(ends_.begin(), ends_.end(), [&](const auto& e) {
    return e.certain && e.name == mine->g.name && e.until < world_.now() &&
           e.granted_at == static_cast<std::int64_t>(mine->g.fence / 4096);
  });
}

bool judge::relies_on(int process, const std::string& name, std::uint64_t fence) const {
  return std::any_of(holds_.begin(), holds_.end(), [&](const hold& h) {
    return h.open && h.g.of->number == process && h.g.name == name && h.g.fence == fence;
  });
}

void judge::took_nothing(int which) {
  std::erase_if(ends_, [&](const auto& e) { return e.id == which; });
  for (auto& h : holds_) {
    if (h.ended_by == which) h.ended = h.told_by = never, h.ended_by = 0;
  }
  for (auto& h : holds_) has_ended(h);
}

void judge::must_be_told(const std::string& name, std::uint64_t fence, nanos told_by) {
  const auto granted_at = static_cast<std::int64_t>(fence / 4096);
  for (auto& e : ends_) {
    if (e.name == name && e.granted_at == granted_at) e.told_by = told_by;
  }
  for (auto& h : holds_) {
    const bool it = h.g.name == name && static_cast<std::int64_t>(h.g.fence / 4096) == granted_at;
    if (it && h.ended != never) h.told_by = told_by;
  }
}

// Includes a grant whose answer has not reached its holder yet.
void judge::has_ended(hold& h) const {
  for (const auto& e : ends_) {
    if (h.ended != never || (!e.name.empty() && e.name != h.g.name)) continue;
    const bool the_same =
        h.g.fence != 0 && static_cast<std::int64_t>(h.g.fence / 4096) == e.granted_at;
    // A hold with another fence may still be the same one: the lock was upgraded or downgraded
    // meanwhile, it is a second hold beside it, or the same call got it after a first grant had
    // ended.
    const bool perhaps = h.g.of->number == e.from && h.g.asked <= e.until;
    if (!the_same && !perhaps) continue;
    h.ended = e.at;
    h.ended_by = e.id;
    if (the_same) h.told_by = e.told_by, h.without_excuse = e.without_excuse;
  }
  // A hold that was handed over within the process: the operator saw only the fence of the hold
  // before.
  for (const auto& o : holds_) {
    if (h.ended != never || o.ended == never || o.g.name != h.g.name || h.g.fence == 0) continue;
    if (o.g.fence / 4096 == h.g.fence / 4096) h.ended = o.ended, h.ended_by = o.ended_by;
  }
}

bool judge::has_a_holder(const std::string& name, bool without_lost) const {
  return std::any_of(holds_.begin(), holds_.end(), [&](const hold& h) {
    return h.open && h.g.name == name && !(without_lost && h.g.lost.stop_requested());
  });
}

bool judge::was_held(const std::string& name, nanos from, nanos to) const {
  return std::any_of(holds_.begin(), holds_.end(), [&](const hold& h) {
    return h.g.name == name && !h.g.of_another_kind && h.first <= from && h.last >= to;
  });
}

bool judge::only_shared(const std::string& name) const {
  return has_a_holder(name) && std::all_of(holds_.begin(), holds_.end(), [&](const hold& h) {
           return !h.open || h.g.name != name || h.g.weight < h.g.capacity;
         });
}

nanos judge::last_had(const std::string& name) const {
  nanos last = 0;
  for (const hold& h : holds_) {
    if (h.g.name == name) last = std::max(last, h.last);
  }
  return last;
}

std::uint64_t judge::weight_of(const std::string& name) const {
  std::uint64_t all = 0;
  for (const hold& h : holds_) {
    if (h.open && h.g.name == name) all += h.g.weight;
  }
  return all;
}

nanos judge::last_gone(const std::string& name) const {
  nanos last = 0;
  for (const hold& h : holds_) {
    if (!h.open && h.g.name == name) last = std::max(last, h.last);
  }
  return last;
}

nanos judge::last_granted(const std::string& name) const {
  nanos last = 0;
  for (const hold& h : holds_) {
    if (h.g.name == name) last = std::max(last, h.first);
  }
  return last;
}

nanos judge::shared_since(const std::string& name, std::uint64_t fence) const {
  nanos first = world_.now();
  for (const hold& h : holds_) {
    const bool the_same = h.g.name == name && h.g.fence == fence && h.g.weight < h.g.capacity;
    if (the_same) first = std::min(first, h.first);
  }
  return first;
}

// The store had seen the other size before it was asked. Where each permit is a slot, a caller that
// names fewer permits does not look at all of them.
void judge::check_capacity(const hold& mine) {
  if (mine.g.of_another_kind) return;  // check_room() judges it
  for (const auto& h : holds_) {
    const bool before = h.open && h.g.name == mine.g.name && h.first < mine.g.asked;
    if (!before || h.g.capacity >= mine.g.capacity || excused(h) || excused(mine)) continue;
    return violated("a semaphore that is in use with fewer permits is a mismatch",
                    describe(h) + "; " + describe(mine));
  }
}

// Sums up what was held at each moment when a hold began that overlaps with this one.
void judge::check_room(const hold& mine) {
  if (only_fences_) return;
  if (excused(mine)) return;
  const auto counts = [&](const hold& h) {
    return h.g.name == mine.g.name && !excused(h) && h.first <= mine.last &&
           std::min(h.last, h.ended) >= mine.first;
  };
  for (const auto& one : holds_) {
    if (!counts(one) || one.first < mine.first) continue;
    std::uint64_t together = 0;
    std::uint32_t most = mine.g.capacity;  // check_capacity() judges differences
    std::string who;
    for (const auto& h : holds_) {
      if (!counts(h) || h.first > one.first || std::min(h.last, h.ended) < one.first) continue;
      // The hold before a change, which ended at this moment, does not count as well.
      if (std::abs(h.id) == std::abs(one.id) && &h != &one) continue;
      together += h.g.weight;
      most = std::max(most, h.g.capacity);
      who += (who.empty() ? "" : "; ") + describe(h);
    }
    if (together > most) {
      return violated("holders that exclude each other never hold together", who);
    }
  }
}

void judge::check_fence(const hold& mine) {
  // One that was handed over may be from a hold that the store has forgotten.
  if (excused(mine) || mine.g.of_another_kind) return;
  if (mine.g.fence == 0) {  // it has no fence
    if (fenced_.contains(mine.g.name)) {
      violated("a lock has a fence for each holder or for none", describe(mine));
    }
    return;
  }
  fenced_.insert(mine.g.name);
  if (mine.ended <= mine.first) return;  // handed over after it was taken away
  auto& before = past_[mine.g.name];
  const bool whole = mine.g.weight == mine.g.capacity;
  const bool many = mine.g.capacity >= 1U << 30;
  // Its process held it before a store's clock jumped. It hands the lock over with the fences below
  // the store's next one, or to one more reader with the same fence.
  const bool handed_on = mine.g.fence % 4096 != 0 || (many && !whole);
  if (only_fences_ && handed_on) return;
  const auto refuse = [&](const std::string& by, std::uint64_t fence) {
    violated("fences grow from holder to holder",
             describe(mine) + ", after " + by + " had fence " + std::to_string(fence));
  };
  for (const auto& h : holds_) {
    if (h.g.name != mine.g.name || std::abs(h.id) == mine.id) continue;
    if (h.open || h.last >= mine.first || h.first <= fences_from_) continue;
    if (h.last >= mine.g.asked) {
      // Two holds that fit beside each other may learn of their grants in any order. Where a clock
      // has jumped, the store may have granted the lock to the next holder before the first one
      // learned of its own grant.
      const bool fits = h.g.weight + mine.g.weight <= mine.g.capacity;
      if (!fits && !only_fences_ && h.g.fence > mine.g.fence) return refuse(h.who, h.g.fence);
      continue;
    }
    // The order of readers does not matter: those of a session share one fence.
    if (!whole && h.g.weight != h.g.capacity && many) continue;
    if (h.g.fence >= mine.g.fence) return refuse(h.who, h.g.fence);
  }
  if (before.whole >= mine.g.fence) return refuse(before.whole_by, before.whole);
  if (before.part >= mine.g.fence && (whole || !many)) return refuse(before.part_by, before.part);
}

// A holder that excludes this one must have noticed its loss by now, unless its process did not
// run.
void judge::check_told(const hold& mine) {
  if (excused(mine) || only_fences_ || mine.ended <= mine.first) return;
  for (const auto& h : holds_) {
    if (!h.open || h.id == mine.id || h.g.name != mine.g.name || h.g.of->dead) continue;
    // A thread that was late between its check and this call had the lock before the other holder
    // came.
    if (h.first > mine.last || h.ended <= mine.first) continue;
    if (h.g.weight + mine.g.weight <= mine.g.capacity || excused(h)) continue;
    if (h.g.lost.stop_requested() || !h.g.lost.stop_possible()) continue;
    if (h.g.of->steady_since > h.first || h.g.of->paused_until > world_.now()) continue;
    violated("the holder learns of a loss before another one may hold",
             describe(h) + " was not told, and " + describe(mine));
    return;
  }
}

void judge::is_awake(const process& of) {
  if (only_fences_) return;
  for (const auto& h : holds_) {
    if (!h.open || h.g.of != &of || excused(h) || h.g.lost.stop_requested()) continue;
    if (!h.g.lost.stop_possible() || h.ended != never) continue;
    for (const auto& next : holds_) {
      if (next.g.name != h.g.name || next.first <= h.last || next.g.of == &of) continue;
      if (next.g.weight + h.g.weight <= h.g.capacity || excused(next)) continue;
      if (next.ended <= next.first) continue;  // a change of a lock that was taken away
      return violated("a process that wakes up learns which locks it lost while it slept",
                      describe(h) + " was not told, and " + describe(next));
    }
  }
}

bool judge::holds_only_others(const process& of, const std::string& name, std::uint64_t fence,
                              nanos since) const {
  bool others = false;
  for (const auto& h : holds_) {
    if (h.g.of != &of || h.g.name != name || !h.open || h.first >= since) continue;
    if (h.g.fence == fence) return false;
    others = true;
  }
  return others;
}

// Forgets the holds that cannot overlap with anything any more.
void judge::forget_old() {
  nanos oldest = world_.now();
  for (const auto& h : holds_) {
    if (h.open) oldest = std::min({oldest, h.first, h.g.asked});
  }
  if (holds_.size() < 32) return;
  std::erase_if(holds_, [&](const hold& h) {
    // An acquisition that is under way may have begun long ago, so the last few holds are kept.
    if (h.open || h.aside || h.last + 20 * second >= oldest) return false;
    if (h.first <= fences_from_) return true;
    auto& p = past_[h.g.name];
    const bool whole = h.g.weight == h.g.capacity;
    if ((whole ? p.whole : p.part) < h.g.fence) {
      (whole ? p.whole : p.part) = h.g.fence;
      (whole ? p.whole_by : p.part_by) = h.who;
    }
    return true;
  });
}

}  // namespace simulation
