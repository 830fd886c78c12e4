#include "simulation/books.hpp"

#include <algorithm>
#include <utility>

#include "simulation/rate_actor.hpp"

namespace simulation {

namespace {

std::string text(std::uint64_t n) { return std::to_string(n); }

/// An observer of an election has polled for the first time within this time.
constexpr nanos first_look = 50 * millisecond;

}  // namespace

void latch_book::counted(std::uint32_t n, nanos now) {
  certain_ += n;
  if (certain_ >= count_) opened_at_ = std::min(opened_at_, now);
}

void latch_book::refused(std::uint32_t n, bool as_too_many) {
  if (!as_too_many || forgot_) return;
  perhaps_ -= n;
  if (perhaps_ + n <= count_) {
    judge_.violated("a latch refuses only what is more than it has left",
                    text(n) + " after at most " + text(perhaps_) + " of " + text(count_));
  }
}

void latch_book::seen_open(bool open, std::uint32_t certain_before) const {
  if (forgot_) return;
  if (open && perhaps_ < count_) {
    judge_.violated("a latch opens exactly at its count",
                    "open after " + text(perhaps_) + " of " + text(count_));
  }
  if (!open && certain_before >= count_) {
    judge_.violated("a latch opens exactly at its count",
                    "closed after " + text(certain_before) + " of " + text(count_));
  }
}

void latch_book::seen_remaining(std::uint32_t left, std::uint32_t certain_before) const {
  if (forgot_) return;
  const std::uint32_t least = perhaps_ >= count_ ? 0 : count_ - perhaps_;
  if (left < least || left + certain_before > count_) {
    judge_.violated("a latch counts exactly", text(left) + " left of " + text(count_) +
                                                  ", of which " + text(certain_before) + " to " +
                                                  text(perhaps_) + " are gone");
  }
}

// Also holds where data was lost: lost data can only raise the remaining count.
void latch_book::stands(std::uint32_t left) const {
  const std::string so = text(left) + " of " + text(count_) + " are left";
  if (left > count_ || count_ - left > perhaps_) {
    judge_.violated("no arrival at a latch counts twice",
                    so + ", and no more than " + text(perhaps_) + " were counted");
  }
  if (!forgot_ && left + certain_ > count_) {
    judge_.violated("each arrival at a latch counts",
                    so + ", and " + text(certain_) + " were counted");
  }
}

void latch_book::waited_in_vain(nanos since, nanos now, nanos bound) const {
  if (opened_at_ == never || forgot_ || now - std::max(since, opened_at_) <= bound) return;
  judge_.violated(
      "a waiter at an open latch goes on",
      "open for " + text(static_cast<std::uint64_t>(now - opened_at_) / 1'000'000) + " ms");
}

std::uint64_t barrier_book::arrived_in(std::uint64_t phase) const {
  return static_cast<std::uint64_t>(std::count_if(begun_.begin(), begun_.end(), [&](auto& one) {
    return one.second >= phase || dropped_.contains(one.first);
  }));
}

void barrier_book::arrived(nanos now) { confirmed_.push_back(now); }

void barrier_book::completes(bool calm) {
  ++completed_;
  if (calm && arrived_in(completed_) < count_) {
    judge_.violated("a barrier's phase ends when all have arrived",
                    "completed " + text(completed_) + " phases, and " +
                        text(arrived_in(completed_)) + " of " + text(count_) +
                        " have arrived in the last one");
  }
}

void barrier_book::goes_on(const std::string& who, bool calm, bool completes) {
  const auto phase = ++went_on_[who];
  if (arrived_in(phase) < count_) {
    judge_.violated("a barrier's phase ends when all have arrived",
                    who + " goes on for the " + text(phase) + "th time, and " +
                        text(arrived_in(phase)) + " of " + text(count_) + " have arrived");
  }
  if (calm && completes && completed_ < phase) {
    judge_.violated(
        "a barrier's completion function has run before a participant goes on",
        who + " goes on for the " + text(phase) + "th time after " + text(completed_) + " calls");
  }
}

void barrier_book::waited_in_vain(const std::string& who, nanos now, nanos bound) const {
  if (!dropped_.empty() || taken_out_) return;
  const auto at = begun_.find(who);
  const auto needed = at->second * count_;
  if (arrived_in(at->second) < count_ || confirmed_.size() < needed) return;
  if (now - confirmed_[needed - 1] <= bound) return;
  judge_.violated("a waiter at a barrier goes on when all have arrived",
                  who + " in its phase " + text(at->second));
}

nanos rate_book::full_after() const noexcept {
  std::uint64_t tokens = changed_ ? 2 * rule_.burst : rule_.burst;  // a debt that is cut off
  for (const auto& one : reserved_) tokens += one.n;
  const auto least = grew_ ? rule_.capacity / 2 : rule_.capacity;
  return static_cast<nanos>(tokens) * rule_.per / least + rule_.per;
}

std::uint64_t rate_book::comes_back_in(nanos length) const noexcept {
  length = length / 100 * 101 + ahead_;
  const auto periods = static_cast<std::uint64_t>(length / rule_.per + (rule_.at_once ? 1 : 0));
  if (rule_.at_once) return periods * rule_.capacity;
  const auto rest = static_cast<std::uint64_t>(length % rule_.per);
  return periods * rule_.capacity + rest * rule_.capacity / static_cast<std::uint64_t>(rule_.per) +
         1;
}

// The tokens that were surely taken within a span are no more than the bucket had, plus those that
// came back meanwhile.
void rate_book::judge_window(const std::string& name, nanos from, nanos to) const {
  if (from <= void_until_) return;
  // After a change of the rules, tokens reserved before may not count; a store that forgot its data
  // does not count them.
  const auto counts = [&](const span& one) {
    return one.from >= from && one.to <= to &&
           (one.before == 0 || (!changed_ && one.from - one.before > void_until_));
  };
  std::uint64_t all = 0;
  std::uint64_t begun_before = 0;  // of an interval reservation: all but one token, perhaps
  std::uint64_t reserved = 0;
  nanos first_reserved = from;
  for (const auto& one : taken_) {
    if (!counts(one)) continue;
    all += one.n;
    if (one.before > 0) {
      reserved += one.n;
      first_reserved = std::min(first_reserved, one.from - one.before);
    }
    if (rule_.at_once && one.before > 0) begun_before = std::max(begun_before, one.n - 1);
  }
  // Tokens given back between a reservation and its time fill the bucket in addition.
  std::uint64_t beside = 0;
  for (const auto& back : refunds_) {
    if (back.to >= from) all -= std::min(all, back.n);
    if (back.to < from && back.to >= first_reserved) beside += back.n;
  }
  all -= std::min({all, beside, reserved});
  const auto most = rule_.burst + comes_back_in(to - from) + begun_before;
  if (all <= most) return;
  const auto us = [](nanos t) { return text(static_cast<std::uint64_t>(t) / 1000); };
  std::string which;
  for (const auto& one : taken_) {
    if (counts(one)) which += "; " + text(one.n) + " at " + us(one.from) + " to " + us(one.to);
  }
  judge_.violated(
      "no more goes through than the rule allows",
      name + ": " + text(all) + " tokens in " + us(to - from) + " us, of " + text(most) + which);
}

// Reserved tokens go through later, so the spans that end after this one are judged, too.
void rate_book::took(std::string name, std::uint64_t n, nanos from, nanos to, nanos before) {
  taken_.push_back({n, from, to, before});
  if (taken_.size() > 300) taken_.pop_front();
  std::set<nanos> ends{to};
  for (const auto& one : taken_) {
    if (one.to > to) ends.insert(one.to);
  }
  for (const auto& first : taken_) {
    if (first.from > from) continue;
    for (const nanos end : ends) judge_window(name, first.from, end);
  }
}

void rate_book::judge_rest(const std::string& name, std::uint64_t left) const {
  // Where a reservation was given up, judge_given_up() counts what the other reservations leave of
  // it.
  const auto given_up = [](const auto& one) { return one.gone != never; };
  if (std::any_of(reserved_.begin(), reserved_.end(), given_up)) return;
  // A refund does not count again the refill of the time in between: up to parts of a token.
  if (left + had_ + 1 >= rule_.burst) return;
  judge_.violated("tokens that no caller received are free",
                  name + ": " + text(left) + " of " + text(rule_.burst) + " are left, and " +
                      text(had_) + " were taken");
}

void rate_book::judge_twice(const std::string& name, std::uint64_t left) const {
  if (left + had_ + doubted_ >= rule_.burst) return;
  judge_.violated("a call takes its tokens once",
                  name + ": " + text(left) + " of " + text(rule_.burst) + " are left, " +
                      text(had_) + " were taken, and " + text(doubted_) + " perhaps");
}

int rate_book::reserved(std::uint64_t n, std::int64_t due, nanos now) {
  reserved_.push_back({n, due, now});
  return static_cast<int>(reserved_.size()) - 1;
}

// In microseconds of refill time.
template <class Beside>
std::int64_t rate_book::lost(const reservation& one, Beside beside) const {
  std::int64_t last = one.due;
  for (const auto& other : reserved_) {
    if (beside(other)) last = std::max(last, other.due);
  }
  return std::min(last - one.due, static_cast<std::int64_t>(one.n) * rule_.per / microsecond);
}

// Rules that became more generous bring back twice as many tokens in the time between the two.
std::uint64_t rate_book::comes_back_of(int which) const {
  const auto& mine = reserved_[static_cast<std::size_t>(which)];
  std::int64_t last = mine.due;
  for (const auto& other : reserved_) {
    if (other.given_up == never) last = std::max(last, other.due);
  }
  const std::int64_t capacity = grew_ ? rule_.capacity / 2 : rule_.capacity;
  const auto needed =
      static_cast<std::uint64_t>((last - mine.due) * capacity * microsecond / rule_.per);
  return mine.n - std::min(mine.n, needed);
}

void rate_book::judge_given_up(const std::string& name, std::int64_t left) const {
  std::int64_t least = 0, most = 0;
  for (const auto& one : reserved_) {
    if (one.gone == never) continue;
    least += lost(one, [&](const reservation& other) {
      return other.answered <= one.given_up && other.given_up >= one.gone;
    });
    most += lost(one, [](const reservation&) { return true; });
  }
  const std::int64_t a_token = rule_.per / microsecond;
  const auto had = static_cast<std::int64_t>(had_), all = static_cast<std::int64_t>(rule_.burst);
  const auto counted = [&](std::string_view what, std::int64_t tokens) {
    judge_.violated("reservations that are given up bring back as many tokens as others leave",
                    name + ": " + std::to_string(left) + " of " + std::to_string(all) +
                        " are left, " + std::to_string(had) + " were taken, and at " +
                        std::string(what) + " " + std::to_string(tokens) + " are lost");
  };
  if (left + had + least / a_token > all) counted("least", least / a_token);
  if (left + had + most / a_token + 2 < all) counted("most", most / a_token + 1);
}

void rate_book::grows() {
  if (std::exchange(changed_, true)) return;
  rule_.burst *= 2;
  rule_.capacity *= 2;
  grew_ = true;
}

int rate_book::refund_begins(std::uint64_t n, nanos asked) {
  refunds_.push_back({n, asked, never});
  return static_cast<int>(refunds_.size()) - 1;
}

bool rate_book::would_give(std::uint64_t n, nanos asked) const {
  const auto fills = [&](const span& one) { return one.to + full_after() > asked; };
  if (std::any_of(taken_.begin(), taken_.end(), fills)) return false;  // also reserved tokens
  return asking_ <= 1 && n <= least_burst_ && !changed_ && ahead_ == 0 &&
         asked - last_ >= full_after();
}

void election_book::leader_is(const std::string& where, std::uint64_t term, int process,
                              const std::string& note) {
  const std::pair so{process, note};
  const auto& known = who_.try_emplace(term, so).first->second;
  if (known == so) return;
  judge_.violated("each leader is shown with its process and its note",
                  where + ": P" + std::to_string(process) + " '" + note + "', and P" +
                      std::to_string(known.first) + " '" + known.second + "'");
}

void election_book::seen(const std::string& name, nanos began, std::uint64_t before,
                         std::uint64_t term, bool after_gap, bool calm) const {
  if (term <= before) {
    judge_.violated("an observer of an election sees ever greater terms",
                    name + ": " + text(term) + " after " + text(before));
  }
  const auto end = gone_.find(term);
  if (calm && before == 0 && end != gone_.end() && end->second < began) {
    judge_.violated("an observer of an election is told of no leader before its time",
                    name + ": " + text(term) + " had resigned");
  }
  if (after_gap || !calm) return;
  for (auto next = terms_.upper_bound(before); next != terms_.end() && next->first < term; ++next) {
    if (before == 0 && next->second.asked < began + first_look) continue;
    return judge_.violated(
        "an observer of an election sees each leader",
        name + ": not " + text(next->first) + " between " + text(before) + " and " + text(term));
  }
}

// An observer polls each half second, so it sees a new leader within a second.
void election_book::seen_no_more(const std::string& name, nanos began, std::uint64_t last,
                                 nanos now) const {
  for (auto next = terms_.upper_bound(last); next != terms_.end(); ++next) {
    if (last == 0 && next->second.asked < began + first_look) continue;
    if (next->second.since > now - second) continue;
    return judge_.violated("an observer of an election sees the next leader soon",
                           name + ": not " + text(next->first) + " after " + text(last));
  }
}

books::books(judge& to, const plan& of) {
  for (std::size_t i = 0; i < of.names.size(); ++i) {
    const auto& n = of.names[i];
    if (n.kind == lock_kind::latch) latches.emplace(i, latch_book(to, n));
    if (n.kind == lock_kind::barrier) {
      barriers.emplace(i, barrier_book(to, n));
      // A database does not know what its rows mean to the programs that write them, so it has no
      // phases.
      if (of.store < store_kind::postgres) {
        phases.emplace(i, phase_book(to, "n" + std::to_string(i), n.capacity, n.at_once));
      }
    }
    if (n.kind == lock_kind::limiter) rates.emplace(i, rate_book(to, n));
    for (std::size_t key = 0; key < n.keys; ++key) {
      rates.emplace(number_of(i, key), rate_book(to, rule_of_a_key(n)));
    }
    if (n.kind == lock_kind::election) elections.emplace(i, election_book(to));
    if (n.kind == lock_kind::condition) conditions.emplace(i, condition_book{});
    if (n.kind == lock_kind::expiring) {
      permits.emplace(i, permit_book(to, "n" + std::to_string(own_name(of, i)), n.capacity));
    }
  }
}

nanos books::full_after() const noexcept {
  nanos longest = 0;
  for (const auto& [i, b] : rates) longest = std::max(longest, b.full_after());
  return longest;
}

bool books::has_permits(const std::string& name, nanos now) {
  return std::any_of(permits.begin(), permits.end(), [&](auto& one) {
    return one.second.name() == name && one.second.has_a_holder(now);
  });
}

phase_book* books::phases_of(std::size_t name) {
  const auto at = phases.find(name);
  return at == phases.end() ? nullptr : &at->second;
}

bool books::any_dropped(std::size_t name) const {
  const auto at = phases.find(name);
  return at == phases.end() ? barriers.at(name).dropped_any() : at->second.any_dropped();
}

void books::forgot(nanos until) {
  for (auto& [i, b] : latches) b.forgot();
  for (auto& [i, b] : phases) b.forgot();
  for (auto& [i, b] : rates) b.forgot(until);
  for (auto& [i, b] : permits) b.forgot(until);
}

}  // namespace simulation
