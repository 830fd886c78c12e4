#include "simulation/permit_book.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace simulation {

namespace {

// The bounds of semaphore.hpp. Clocks differ by up to 5 in 1,000.
nanos at_least(nanos lease) { return lease / 100 * 99 - 2 * millisecond; }
nanos at_most_lasts(nanos lease) { return lease / 100 * 101 + 5 * millisecond; }
/// A request whose caller has left arrives within this time.
constexpr nanos latest = 15 * second;

std::string ms_of(nanos t) { return std::to_string(t / millisecond) + " ms"; }

}  // namespace

void permit_book::asks_no_longer(nanos perhaps_until) {
  --asking_;
  perhaps_.push_back(perhaps_until);
}

std::uint64_t permit_book::at_most(nanos now) {
  goes_on(now);
  std::erase_if(perhaps_, [&](nanos until) { return until < now; });
  const auto there =
      std::count_if(all_.begin(), all_.end(), [](const permit& p) { return !p.over; });
  return static_cast<std::uint64_t>(there + asking_) + perhaps_.size();
}

permit_book::permit& permit_book::got(judge::grant g, std::string id, nanos given, nanos lease,
                                      nanos now) {
  --asking_;
  goes_on(now);
  permit& p = all_.emplace_back();
  p.id = std::move(id);
  p.since = now;
  p.longest = lease;
  p.over_after = now + at_most_lasts(lease);
  if (given > void_until_) p.surely_until = given + at_least(lease);
  if (p.surely_until > now) p.hold = judge_.granted(std::move(g), now);
  return p;
}

permit_book::permit* permit_book::one_of_those(bool over, std::uint64_t which, nanos now) {
  goes_on(now);
  std::vector<permit*> some;
  for (auto& p : all_) {
    if (p.over == over) some.push_back(&p);
  }
  return some.empty() ? nullptr : some[which % some.size()];
}

permit_book::call permit_book::begins(permit& of, nanos now) {
  goes_on(now);
  const call c{&of, now, of.surely_until, of.over_after, ++of.calls, of.under_way == 0};
  ++of.under_way;
  return c;
}

// The extension may be to a shorter time.
permit_book::call permit_book::begins_to_extend(permit& of, nanos lease, nanos now) {
  const call c = begins(of, now);
  if (of.surely_until <= now) judge_.given_up(of.hold);  // nobody has checked it for a while
  of.surely_until = std::min(of.surely_until, now + at_least(lease));
  of.over_after = never;
  of.over = false;
  of.longest = std::max(of.longest, lease);
  return c;
}

permit_book::call permit_book::begins_to_give_back(permit& of, nanos now) {
  const call c = begins(of, now);
  judge_.given_up(of.hold);
  of.surely_until = 0;
  of.let_go = true;
  return c;
}

// Whether no other call touched the permit meanwhile.
bool permit_book::ends_alone(const call& by) noexcept {
  --by.of->under_way;
  return by.alone && by.of->calls == by.number && !by.of->in_doubt;
}

void permit_book::judge_answer(const call& by, bool so, bool only, nanos now, excuses none,
                               const char* what) const {
  if (!so && only && none.lasts && by.surely_until > now && by.asked > void_until_) {
    judge_.violated(
        "a permit lasts for as long as the library said",
        name_ + ": for " + ms_of(by.surely_until - now) + " more, and cannot be " + what);
  }
  if (so && only && none.ends && by.over_after < by.asked) {
    judge_.violated(
        "a permit that has ended stays ended",
        name_ + ": it had ended " + ms_of(by.asked - by.over_after) + " before it was " + what);
  }
}

void permit_book::extended(const call& by, bool so, nanos lease, nanos now, excuses none) {
  permit& p = *by.of;
  const bool only = ends_alone(by);
  judge_answer(by, so, only, now, none, "extended");
  if (!so) {
    judge_.given_up(p.hold);
    p.surely_until = 0;
    p.over_after = now;
  } else if (p.under_way == 0) {
    p.over_after = now + at_most_lasts(only ? lease : p.longest);
  }
  if (so && only && by.asked > void_until_) p.surely_until = by.asked + at_least(lease);
  goes_on(now);
}

void permit_book::given_back(const call& by, bool so, nanos now, excuses none) {
  judge_answer(by, so, ends_alone(by), now, none, "given back");
  by.of->over_after = now;
  goes_on(now);
}

void permit_book::in_doubt(const call& by, nanos now) {
  (void)ends_alone(by);
  permit& p = *by.of;
  p.in_doubt = true;
  p.over_after = now + at_most_lasts(p.longest) + latest;
}

void permit_book::seen_free(std::uint32_t n, nanos asked, nanos now) const {
  const auto there = std::count_if(all_.begin(), all_.end(), [&](const permit& p) {
    return p.since <= asked && p.surely_until > now;
  });
  if (n + static_cast<std::uint64_t>(there) <= capacity_) return;
  judge_.violated("a held permit is not free", name_ + ": " + std::to_string(n) +
                                                   " are free, and " + std::to_string(there) +
                                                   " are not, of " + std::to_string(capacity_));
}

void permit_book::forgot(nanos until) {
  void_until_ = std::max(void_until_, until);
  for (auto& p : all_) {
    judge_.given_up(p.hold);
    p.surely_until = 0;
  }
}

void permit_book::goes_on(nanos now) {
  for (auto& p : all_) {
    if (p.over) continue;
    if (p.surely_until > 0) judge_.still_held(p.hold, std::min(now, p.surely_until));
    if (p.under_way > 0 || now <= p.over_after) continue;
    p.over = true;
    judge_.given_up(p.hold);
  }
}

bool permit_book::has_a_holder(nanos now) {
  goes_on(now);
  return std::any_of(all_.begin(), all_.end(), [](const permit& p) { return !p.over; });
}

}  // namespace simulation
