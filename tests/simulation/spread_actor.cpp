#include "simulation/spread_actor.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "simulation/answers.hpp"
#include "simulation/encounters.hpp"
#include "simulation/patience.hpp"

namespace simulation {

namespace {

using holdfast::errc;

// A majority's votes take less. A node that does not answer has longer.
constexpr nanos without_a_node = 150 * millisecond;

/// A hold that spans stores, of one name or two.
struct spread_actor : actor {
  std::vector<int> ids{};

  template <class Held>
  void hold(const Held& held) try {
    for (int i = 0; i < 4; ++i) {
      of.here.sleep(s.hold / 4);
      const nanos then = of.here.now();
      held.check();
      if constexpr (std::is_same_v<Held, holdfast::quorum_lease>) judge_its_time(held);
      for (const int one : ids) of.rules.still_held(one, then);
    }
  } catch (const holdfast::error& e) {
    judge_error(e.reason(), e.what());
  }

  template <class Held>
  void give_back(Held& held) {
    for (const int one : ids) of.rules.given_up(one);
    judge_token(held);
    of.log.add("gives back " + name);
    if (s.back == step::end::destroy) return;
    // The check locks a mutex, at which runs from before `freezing_seeds` did not interrupt the
    // thread.
    const bool ended = of.whole.seed >= freezing_seeds && has_ended(held);
    const auto had = votes_of(held);
    const nanos began = of.here.now();
    const auto e = release(held);
    if (ended && e != errc::lost) {
      of.rules.violated("a release of a lease that has ended reports the loss",
                        name + ": " + (e ? e.message() : "no error"));
    }
    if (e) judge_error(static_cast<errc>(e.value()), "release: " + e.message());
    if (!e && !had.empty()) judge_release(had, began);
  }
  std::vector<holdfast::vote> votes_of(const holdfast::quorum_lease& held) const {
    return of.whole.seed >= form_seeds ? held.votes() : std::vector<holdfast::vote>{};
  }
  static std::vector<holdfast::vote> votes_of(const holdfast::both_leases&) { return {}; }

  // No other thread of its process uses the name, or has just given it up, and no request of it
  // arrives late.
  void judge_release(const std::vector<holdfast::vote>& had, nanos began) const {
    const nanos changed = of.used_at[{s.name, p.number}];
    if (changed > asked && changed + second > began) return;
    std::vector<bool> left;
    for (const auto& at : of.stores) {
      if (at->late_at(p) >= 0) return;
      left.push_back(at->users(name)[p.number] > 0);
    }
    const auto alone = of.users.find({s.name, p.number});
    if (alone == of.users.end() || alone->second != 1 || !of.keeps_all()) return;
    judge_rest_of_a_redlock(
        of.rules, "P" + std::to_string(p.number) + ": " + of.at_the_stores(name), had, left);
  }
  // As far as its holder can see.
  static bool has_ended(const holdfast::quorum_lease& held) {
    return held.state() == holdfast::lease_state::lost;
  }
  static bool has_ended(const holdfast::both_leases&) { return false; }

  // The thread keeps the lost lease for a moment.
  void judge_token(const holdfast::quorum_lease& held) const {
    const auto& m = of.whole.machine;
    if (of.whole.seed < news_seeds || m.slow_permille != 0 || m.stall_per_100k != 0) return;
    if (!has_ended(held)) return;
    const nanos then = of.here.now();
    of.here.sleep(100 * millisecond);
    const bool ran = p.steady_since <= then && p.paused_until <= then;
    if (!ran || held.lost().stop_requested()) return;
    of.rules.violated("the lost() token of a lost lease has requested a stop", name);
  }
  static void judge_token(const holdfast::both_leases&) {}
  std::error_code release(holdfast::both_leases& held) const {
    if (s.form < 3) return held.release();
    const auto how = async_release(std::move(held)).future().get();
    return how ? std::error_code{} : make_error_code(how.error().code);
  }
  std::error_code release(holdfast::quorum_lease& held) const {
    if (!without_waiting()) return held.release();
    const auto how = async_release(std::move(held)).future().get();
    return how ? std::error_code{} : make_error_code(how.error().code);
  }

  template <class Lock>
  auto take(Lock& l) -> decltype(l.try_acquire()) {
    if (s.wait == never) return l.acquire(stop());
    if (s.wait == 0) return l.try_acquire();
    return within(l);
  }
  template <class Lock>
  auto within(Lock& l) const -> decltype(l.try_acquire()) {
    return l.try_acquire_for(duration(s.wait), stop());
  }

  // A call may state the length of the lease; that lease is not renewed.
  bool says_how_long() const { return s.otherwise && of.whole.seed >= several_seeds; }
  nanos said() const { return says_how_long() ? does.lease / 2 : of.whole.longest_lease(); }

  std::optional<holdfast::quorum_lease> take(holdfast::redlock& l) {
    const auto lease = says_how_long() ? std::optional(in_ms(said())) : std::nullopt;
    if (s.wait == never) return lease ? l.acquire(*lease, stop()) : l.acquire(stop());
    if (s.wait == 0 && !lease) return l.try_acquire();
    return l.try_acquire_for(duration(s.wait), lease, stop());
  }

  void judge_length(nanos left) const {
    const bool exact = of.punctual() && of.whole.machine.preempt_permille == 0;
    const auto lasts = name + ": " + std::to_string(left / microsecond) + " us of " +
                       std::to_string(said() / microsecond);
    if (left > said()) of.rules.violated("a hold lasts no longer than the library said", lasts);
    if (exact && left < said() / 4 * 3)
      of.rules.violated("a grant lasts as long as the library said", lasts);
  }

  void grant(std::size_t of_name, std::uint64_t fence, std::stop_token lost, nanos then) {
    ids.push_back(
        of.rules.granted({&p, scene::name_of(of_name), 1, 1, fence, asked, std::move(lost)}, then));
  }

  // A later majority has a node of this one, so it knows the greatest fence that this one was
  // given.
  void judge_fence(std::uint64_t fence) const {
    if (of.whole.seed < accounting_seeds) return;
    const auto majority = of.stores.size() / 2 + 1;
    const auto greatest = of.said.greatest_fence(p.number, name, fence, majority);
    if (!greatest || fence >= *greatest) return;
    of.rules.violated(
        "the fence of a redlock is the greatest that its majority granted",
        name + ": " + std::to_string(fence) + " instead of " + std::to_string(*greatest));
  }

  // Synchronously or asynchronously.
  std::optional<holdfast::quorum_lease> take_votes(holdfast::redlock& l) {
    if (!without_waiting()) return take(l);
    return in_time(async_acquire(l, limit(), stop()));
  }

  void fails(errc why) const {
    if (why == errc::unavailable) {
      judge_nodes(of.rules, of.whole, name, asked, of.here.now(),
                  static_cast<std::size_t>(p.number) - 1, s.wait);
    }
    judge_outage();
    judge_wait(true, true);
  }

  // Before the first vote the lock asks its nodes who they are.
  void asks_nodes(const holdfast::redlock& l) {
    if (l.attempts() == 0) ++rounds_of_a_try;
    waits(true);
  }

  // Nobody else uses the name, or has just done so.
  bool is_alone() const {
    return of.whole.processes.size() == 1 && does.threads.size() == 1 && s.think >= second;
  }

  // The others are a majority. The node counts as away when it has had its time, and before that
  // the lock needs it for nothing.
  void judge_haste(bool first) const {
    const auto& whole = of.whole;
    const nanos took = of.here.now() - asked;
    const bool judged = whole.seed >= dividing_seeds && !first && has_one_store_away(whole) &&
                        whole.machine.preempt_permille == 0 && is_alone();
    if (!judged || took < without_a_node || p.steady_since > asked || p.paused_until > asked)
      return;
    of.rules.violated("a redlock does not wait for a node that it does not need",
                      name + ": " + std::to_string(took / microsecond) + " us");
  }

  void act(holdfast::redlock& l) {
    const bool first = l.attempts() == 0;
    asks_nodes(l);
    std::optional<holdfast::quorum_lease> held;
    try {
      held = take_votes(l);
    } catch (const holdfast::error& e) {
      fails(e.reason());
      throw;
    }
    judge_wait(held.has_value(), true);
    judge_outage();
    if (!held) return;
    judge_haste(first);
    const nanos then = of.here.now();
    held->check();
    grant(s.name, held->fence(), held->lost(), then);
    judge_fence(held->fence());
    judge_length(held->remaining().count());
    if (of.punctual()) judge_votes(of.rules, name, held->votes(), of.stores.size());
    hold(*held);
    give_back(*held);
  }

  using both_mutexes = holdfast::both<holdfast::mutex, holdfast::mutex>;

  template <class Lock>
  bool lock(Lock& l) const {
    if (s.wait == never) return l.lock(), true;
    return s.wait == 0 ? l.try_lock() : l.try_lock_for(duration(s.wait));
  }

  // A lock that was lost while the other one was waited for is taken again.
  template <class Check>
  void check_what_was_given(Check check) const try {
    check();
  } catch (const holdfast::error&) {
    if (of.whole.seed >= mixed_seeds) judge_first_check();
  }

  void act_in_standard_style(both_mutexes& l, holdfast::mutex& old, holdfast::mutex& next) {
    ++of.at_several;
    bool got = false;
    try {
      got = lock(l);
    } catch (...) {
      --of.at_several;
      throw;
    }
    --of.at_several;
    judge_wait(got, false);
    if (!got) return;
    const auto check = [&] {
      old.check();
      next.check();
    };
    check_what_was_given(check);
    hold_in_standard_style(l, check, [&](nanos then) {
      grant(s.name - 2, old.fence(), old.lost(), then);
      grant(s.name - 1, next.fence(), next.lost(), then);
    });
  }

  void act_in_standard_style(holdfast::redlock& l) {
    asks_nodes(l);
    bool got = false;
    try {
      got = lock(l);
    } catch (const holdfast::error& e) {
      fails(e.reason());
      throw;
    }
    judge_wait(got, false);
    judge_outage();
    if (!got) return;
    hold_in_standard_style(
        l, [&] { l.check(); }, [&](nanos then) { grant(s.name, l.fence(), l.lost(), then); });
  }

  template <class Lock, class Check, class Grant>
  void hold_in_standard_style(Lock& l, Check check, Grant grant_all) {
    try {
      nanos then = of.here.now();
      check();
      grant_all(then);
      for (int i = 0; i < 4; ++i) {
        of.here.sleep(s.hold / 4);
        then = of.here.now();
        check();
        for (const int one : ids) of.rules.still_held(one, then);
      }
    } catch (const holdfast::error& e) {
      judge_error(e.reason(), e.what());
    }
    for (const int one : ids) of.rules.given_up(one);
    of.log.add("unlocks " + name);
    l.unlock();
  }

  void act(both_mutexes& l) {
    ++of.at_several;
    std::optional<holdfast::both_leases> held;
    try {
      held = s.form % 2 == 1 ? in_time(async_acquire(l, limit(), stop())) : take(l);
    } catch (...) {
      --of.at_several;
      throw;
    }
    --of.at_several;
    judge_wait(held.has_value(), true);
    if (!held) return;
    const nanos then = of.here.now();
    check_what_was_given([&] { held->check(); });
    held->check();
    grant(s.name - 2, held->old().fence(), held->old().lost(), then);
    grant(s.name - 1, held->next().fence(), held->next().lost(), then);
    hold(*held);
    give_back(*held);
  }
};

}  // namespace

void act_across_stores(const actor& who, belongings& all) {
  auto& mine = all.of_meetings[who.s.name];
  if (who.s.clashes) return act_as_another_kind(who, all.of_locks[who.s.name]);
  spread_actor a{{who}};
  const bool may_be_asked = who.s.form % 3 == 1 && who.s.stop_after == never && !who.s.otherwise;
  if (mine.redlock && may_be_asked && !who.without_waiting()) {
    a.act_in_standard_style(*mine.redlock);
  } else if (mine.redlock) {
    a.act(*mine.redlock);
  } else if (who.of.whole.seed >= unlike_seeds && who.s.how == step::style::standard) {
    const auto of_locks = all.of_locks.begin() + static_cast<std::ptrdiff_t>(who.s.name);
    a.act_in_standard_style(*mine.both, *of_locks[-2].mutex, *of_locks[-1].mutex);
  } else {
    a.act(*mine.both);
  }
}

}  // namespace simulation
