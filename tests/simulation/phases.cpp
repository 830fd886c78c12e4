#include "simulation/phases.hpp"

#include <algorithm>
#include <utility>

namespace simulation {

namespace {

std::string name_of(int process) { return "P" + std::to_string(process); }

}  // namespace

void phase_book::violated(const char* rule, std::string what) const {
  judge_.violated(rule, name_ + ": " + std::move(what));
}

phase_book::places phase_book::read(const holdfast::store::permits_record& r,
                                    const std::function<int(std::string_view)>& process_of) const {
  places all;
  for (const auto& h : r.holders) {
    all[h.owner] = {process_of(h.peer), false, false, h.lingers};
    // Nobody notifies the last participant to arrive, so the record does not name its process.
    const auto known = process_of_.find(h.owner);
    if (!h.peer.empty() || known == process_of_.end()) continue;
    all[h.owner].process = known->second;
    all[h.owner].unnamed = true;
  }
  for (const auto& w : r.queue) {
    all[w.owner] = {w.peer.empty() ? 0 : process_of(w.peer), true, w.peer.empty(), false};
  }
  return all;
}

void phase_book::stands(const holdfast::store::permits_record& at_the_server, nanos now,
                        const std::function<int(std::string_view)>& process_of,
                        std::int64_t clock) {
  judge_stay(at_the_server, clock);
  places next = read(at_the_server, process_of);
  for (const auto& [who, at] : next) {
    for_good_ = for_good_ || at.for_good;
    if (at.for_good) out_.insert(who);
  }
  const bool forgotten = std::any_of(there_.begin(), there_.end(), [&](const auto& one) {
    return one.second.for_good && !next.contains(one.first);
  });
  const bool all_left = next.empty() && !there_.empty();
  if (emptied_ || all_left || forgotten) empty_at_ = now;
  arrive_again(next);
  const bool complete =
      std::any_of(there_.begin(), there_.end(), [](const auto& one) { return one.second.alone; });
  for (const auto& who : left_) {
    const auto before = there_.find(who);
    if (complete && before != there_.end() && before->second.waits) ++went_early_;
  }
  opens_and_breaks(next, now);
  if (there_.size() >= count_) full_until_ = now;
  there_ = std::move(next);
  left_.clear();
  arrived_.clear();
  granted_.clear();
  another_record_ = emptied_ = false;
}

// Each command removes what has ended. The name of a participant's process is removed when it drops
// out.
void phase_book::judge_stay(const holdfast::store::permits_record& r, std::int64_t clock) const {
  std::size_t out = 0;
  for (const auto& w : r.queue) {
    out += w.peer.empty() ? 1U : 0U;
    if (w.expires_at >= clock) continue;
    violated("no participant whose lease has ended stays at a barrier",
             "one has ended " + std::to_string(clock - w.expires_at) + " us ago");
  }
  if (out < count_) return;
  violated("a barrier that all participants have left begins anew", "it is full of them");
}

// A participant whose arrival is unanswered arrives in the next phase if its own broke meanwhile.
// But its thread may learn of the break as well: the arrival may be a late request.
void phase_book::arrive_again(const places& next) {
  for (const auto& [who, at] : next) {
    const auto before = broken_.find(who);
    if (before == broken_.end()) continue;
    auto& told = of_[at.process];
    if (before->second.waits) {
      --told.waited;
    } else {  // its phase had ended
      const auto its = std::find(told.openings.begin(), told.openings.end(), opened_[who]);
      if (its != told.openings.end()) told.openings.erase(its);
    }
    told.broke_at = never;
    broken_.erase(before);
  }
}

// If a phase ended and another broke in the same step, the participants that were there when the
// step began belong to the one that ended.
void phase_book::opens_and_breaks(const places& next, nanos now) {
  for (const auto& [who, process] : granted_) {
    const auto before = there_.find(who);
    const bool rested = before != there_.end() && !before->second.waits;
    if (next.contains(who) || rested) continue;
    of_[process].openings.push_back(now);
    opened_[who] = now;
    there_[who] = {process, false, false, false};
  }
  if (!opens(next, now)) return breaks(next, now);
  // A phase may break before others come and end the next one in the same step. The leases of
  // participants may end, too, before they learned that their phase had ended.
  bool broke = false;
  for (const auto& [who, at] : there_) {
    if (at.for_good || left_.contains(who) || next.contains(who) || granted_.contains(who))
      continue;
    broke = true;
    is_lost(who, at, now);
  }
  if (broke) ++broke_;
}

// In the record, a holder is a participant that has continued and rests. True if a phase has ended.
bool phase_book::opens(const places& next, nanos now) {
  std::size_t gone_on = 0;
  std::map<int, std::size_t> of_each;
  for (const auto& [who, at] : next) {
    if (at.waits || at.alone) continue;
    const auto before = there_.find(who);
    if (before != there_.end() && !before->second.waits && !before->second.alone) continue;
    ++gone_on;
    ++of_each[at.process];
    of_[at.process].openings.push_back(now);
    opened_[who] = now;
  }
  if (gone_on == 0 || another_record_) return gone_on > 0;
  for (const auto& [process, many] : of_each) {
    const auto threads = of_[process].at_it.size();
    if (process == 0 || many <= threads || of_[process].late) continue;
    violated("no thread counts twice in one phase of a barrier",
             std::to_string(many) + " of " + name_of(process) + " go on, where " +
                 std::to_string(threads) + " of its threads have arrived");
  }
  if (has_completion_ && completed_ < ++ended_ && !forgot_) {
    violated("a barrier's completion function has run before a participant goes on",
             std::to_string(completed_) + " times in " + std::to_string(ended_) + " phases");
  }
  judge_opening(gone_on, next);
  went_early_ = 0;
  return true;
}

// A participant that leaves while the last one runs the completion function was there.
void phase_book::judge_opening(std::size_t gone_on, const places& next) const {
  const auto stay = static_cast<std::size_t>(
      std::count_if(next.begin(), next.end(), [](const auto& one) { return one.second.for_good; }));
  const auto gone =
      static_cast<std::size_t>(std::count_if(there_.begin(), there_.end(), [&](const auto& one) {
        const bool arrived = one.second.waits || one.second.alone;
        return arrived && left_.contains(one.first) && !next.contains(one.first);
      }));  // by the same request, after the phase was complete
  const auto all = [&](std::size_t n) { return n <= count_ && n + went_early_ + gone >= count_; };
  if (all(gone_on + stay) && all(next.size())) return;
  violated("a barrier's phase ends when all have arrived",
           std::to_string(gone_on) + " go on, and " + std::to_string(stay) +
               " have arrived for good, of " + std::to_string(count_));
}

// A participant that is gone without leaving is lost: the phase is broken for all.
void phase_book::breaks(const places& next, nanos now) {
  bool broken = false;
  bool whole = true;
  bool drops_one = false;
  for (const auto& [who, at] : there_) {
    drops_one = drops_one || (at.for_good && !next.contains(who));
    if (at.for_good || left_.contains(who)) continue;
    if (next.contains(who)) {
      whole = whole && arrived_.contains(who);
      continue;
    }
    broken = true;
    is_lost(who, at, now);
  }
  if (broken) ++broke_, went_early_ = 0;
  if (broken && !whole && !another_record_) {
    violated("a barrier breaks as a whole", "one participant was lost, and others stay");
  }
  // A late request of a session that has ended: its entry was lost in the step that made it.
  const bool came_and_went = std::any_of(next.begin(), next.end(), [&](const auto& one) {
    return !there_.contains(one.first) && of_[one.second.process].late;
  });
  // If all have dropped out, nobody is there any more.
  if (drops_one && !broken && !came_and_went && !next.empty() && left_.empty() && !emptied_ &&
      !another_record_ && !forgot_) {
    violated("a participant that dropped out keeps its place until its phase ends",
             "it is forgotten, and others are there");
  }
}

void phase_book::is_lost(const owner& who, const place& at, nanos now) {
  if (breaks_never_ && at.process != 0) {
    violated("a barrier breaks only if a participant is lost", name_of(at.process) + " was there");
  }
  broken_[who] = at;
  auto& told = of_[at.process];
  if (!at.unnamed && !given_up_.contains(who)) told.broke_at = std::min(told.broke_at, now);
  ++told.broken;
  if (at.waits) ++told.waited;
}

// A broken phase may have been complete; the end of a phase that all participants left for good is
// not seen.
void phase_book::completes() {
  if (++completed_ <= ended_ + broke_ + 1 || forgot_ || for_good_) return;
  violated("a barrier's completion function runs once a phase",
           std::to_string(completed_) + " times in " + std::to_string(ended_) + " phases, and " +
               std::to_string(broke_) + " that broke");
}

void phase_book::cleared(std::size_t waited, std::size_t still) const {
  if (still < waited) return;
  violated("an operator who clears a barrier removes its waiters",
           std::to_string(still) + " still wait there");
}

void phase_book::forgot() {
  another_record_ = forgot_ = true;
  for (auto& [process, told] : of_) told.exact = false;
}

void phase_book::passes(int process, nanos asked, nanos now, nanos waits_since, nanos soon) {
  auto& mine = of_[process];
  auto& all = mine.openings;
  auto at = std::find_if(all.begin(), all.end(), [&](nanos t) { return t >= asked; });
  if (at == all.end() && mine.taken_up > 0 && !all.empty()) {
    --mine.taken_up;
    at = std::prev(all.end());
  }
  if (at == all.end() || *at > now) {
    return violated("a participant that goes on at a barrier was there when its phase ended",
                    name_of(process) + " has more that went on than were there");
  }
  if (mine.one_thread && mine.exact && !forgot_ && mine.broke_at < *at) {
    return violated("no participant passes a barrier that broke",
                    name_of(process) + " goes on, and was not told that its phase broke at " +
                        std::to_string(mine.broke_at / 1000) + " us");
  }
  const nanos took = now - std::max({*at, asked, waits_since});
  if (soon != never && took > soon && mine.one_thread && mine.exact && !forgot_) {
    violated("a waiter at a barrier goes on when all have arrived",
             name_of(process) + " after " + std::to_string(took / 1000) + " us");
  }
  all.erase(at);
}

// The record of a barrier that all participants have left is gone in the step that records the last
// one.
void phase_book::has_dropped_out(int process) {
  if (++told_out_ <= out_.size() || empty_at_ >= 0 || forgot_) return;
  violated("a participant that dropped out is recorded as dropped out",
           name_of(process) + ": " + std::to_string(told_out_) + " have dropped out, and " +
               std::to_string(out_.size()) + " are recorded");
}

void phase_book::told_broken(int process) {
  auto& mine = of_[process];
  mine.broke_at = never;
  if (++mine.told_so <= mine.broken || !mine.exact || forgot_) return;
  violated("a participant that gets the error of a break was at the barrier",
           name_of(process) + " was told " + std::to_string(mine.told_so) + " times, and had " +
               std::to_string(mine.broken) + " participants of phases that broke");
}

void phase_book::told_unknown(int process) {
  auto& mine = of_[process];
  mine.broke_at = never;
  ++mine.taken_up;
  ++mine.unknown;
  for (const auto& [who, at] : there_)
    if (at.process == process) given_up_.insert(who);
}

// A participant's own arrival may have broken before its answer came: repeated, it is a new
// arrival.
void phase_book::told_too_soon(int process, nanos drops_since) const {
  if (broke_ > 0 || forgot_ || empty_at_ >= drops_since) return;
  violated("the library asks again for an arrival that was not answered",
           name_of(process) + " is told that nobody knows it any more");
}

void phase_book::refused_as_full(int process, nanos asked) {
  auto& mine = of_[process];
  if (mine.broke_at >= asked) mine.broke_at = never;
  if (mine.waited > mine.told_so + mine.unknown + mine.standing) --mine.waited;
  if (there_.size() >= count_ || full_until_ >= asked || forgot_) return;
  violated("a barrier refuses only a participant beyond its number of places",
           std::to_string(there_.size()) + " of " + std::to_string(count_) + " were there");
}

void phase_book::not_in_time(int process, nanos asked, nanos now, nanos calm_since, nanos bound) {
  auto& mine = of_[process];
  ++mine.standing;
  ++mine.taken_up;
  if (!mine.one_thread || !mine.exact || forgot_) return;
  const auto due = [&](nanos since) { return std::max({since, asked, calm_since}) + bound < now; };
  if (mine.broke_at != never && due(mine.broke_at)) {
    violated("a waiter at a barrier that breaks gets the error", name_of(process) + " was not");
  }
  const auto& all = mine.openings;
  const bool its_own = mine.standing == 1 && !all.empty() && all.back() >= asked;
  if (its_own && due(all.back())) {
    violated("a waiter at a barrier goes on when all have arrived", name_of(process) + " does not");
  }
}

void phase_book::ends(int process) const {
  const auto at = of_.find(process);
  if (at == of_.end() || !at->second.exact || forgot_) return;
  const auto& mine = at->second;
  if (mine.told_so + mine.unknown + mine.standing >= mine.waited) return;
  violated("a waiter at a barrier that breaks gets the error",
           name_of(process) + " had " + std::to_string(mine.waited) +
               " that waited where it broke, and was told " + std::to_string(mine.told_so) +
               " times");
}

}  // namespace simulation
