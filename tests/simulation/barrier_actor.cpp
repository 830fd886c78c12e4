#include "simulation/barrier_actor.hpp"

#include <algorithm>
#include <utility>

namespace simulation {

namespace {

using holdfast::errc;
using holdfast::result;

struct participant_actor : actor {
  meeting& all;
  phase_book& phases;
  participant& me;
  barrier_deed how;
  nanos since = asked;  ///< when its arrival began

  // The time until it stops is not judged: the thread that requests the stop may be late itself.
  bool may_be_late() const {
    return how == barrier_deed::wait_until_stopped || how == barrier_deed::async_stopped;
  }
  std::string who() const { return "P" + std::to_string(p.number) + "." + world::self()->name; }

  void act() {
    if (does.threads.size() > 1) phases.shares(p.number);
    begins();
    try {
      meet();
    } catch (const holdfast::error& e) {
      is_told(e.reason(), e.outcome_unknown(), e.what());
    }
  }

  void begins() { phases.begins(p.number, world::self()->name); }
  void knows() { phases.knows(p.number, world::self()->name); }
  void nothing_is_open() { me.unheard_since = never, me.drops = false; }

  void meet() {
    if (how == barrier_deed::enter_and_leave) return enter_and_leave();
    if (me.standing) return wait_again();
    of.log.add("arrives");
    const bool for_good = how == barrier_deed::drop || how == barrier_deed::async_drop;
    if (for_good && !me.dropped) return drop();
    const bool at_once = how == barrier_deed::async_arrive_and_wait ||
                         how == barrier_deed::async_stopped || me.dropped;
    at_once ? arrive_and_wait() : arrive();
  }

  // ---- separate steps

  void arrive() {
    me.asked = asked;
    if (how == barrier_deed::async_arrive) {
      me.standing.emplace(value_of(async_arrive(*all.barrier)));
    } else {
      me.standing.emplace(all.barrier->arrive());
    }
    of.log.add("has arrived");
    wait();
  }

  void wait_again() {
    of.log.add("waits again");
    wait();
  }

  void wait() {
    since = me.asked;
    if (how == barrier_deed::async_wait && does.threads.size() == 1) {
      auto mine = std::move(*me.standing);
      me.standing.reset();
      return ends(async_wait(*all.barrier, std::move(mine), limit()), of.here.now());
    }
    const nanos begins = of.here.now();
    bool gone_on = false;
    try {
      gone_on = how == barrier_deed::wait_until_stopped
                    ? all.barrier->wait(*me.standing, stop_in(s.wait))
                    : all.barrier->wait_for(*me.standing, duration(s.wait));
    } catch (const holdfast::error& e) {
      if (e.reason() == errc::lost) give_it_up();
      throw;
    }
    in_time(begins, gone_on);
    if (!gone_on) return in_vain();
    me.standing.reset();
    goes_on();
  }

  // An arrival of a phase that broke cannot be used for anything else.
  void give_it_up() {
    bool gone_on = false;
    try {
      gone_on = s.weight == 1 && all.barrier->wait_for(*me.standing, duration(s.wait));
    } catch (const holdfast::error& e) {
      of.log.add(std::string("asks once more, and gets ") + e.what());
    }
    me.standing.reset();
    if (!gone_on) return;
    of.rules.violated("no participant passes a barrier that broke", who() + " waited once more");
  }

  // ---- one call

  void arrive_and_wait() {
    const nanos begins = of.here.now();
    if (how == barrier_deed::async_stopped) {
      return ends(async_arrive_and_wait(*all.barrier, {}, stop_in(s.wait)), begins);
    }
    ends(async_arrive_and_wait(*all.barrier, limit()), begins);
  }

  void enter_and_leave() {
    of.log.add("enters");
    auto entered = async_enter(*all.twice, limit()).future().get();
    judge(entered, since);
    if (!entered) return;
    since = of.here.now();
    begins();
    of.log.add("leaves");
    ends(async_leave(*all.twice, limit()), since);
  }

  void ends(holdfast::pending<holdfast::done> what, nanos began) {
    judge(std::move(what).future().get(), began);
  }

  void judge(const result<holdfast::done>& how_it_ended, nanos began) {
    const errc why = how_it_ended ? errc{} : how_it_ended.error().code;
    const bool in_vain_only = why == errc::busy || why == errc::timed_out || why == errc::cancelled;
    in_time(began, !in_vain_only);
    if (how_it_ended) return goes_on();
    me.dropped = true;
    if (in_vain_only) return in_vain();
    is_told(how_it_ended.error().code, how_it_ended.error().outcome_unknown,
            how_it_ended.error().what);
  }

  void drop() {
    me.drops = true;
    if (how == barrier_deed::drop) {
      all.barrier->arrive_and_drop();
    } else {
      (void)value_of(async_arrive_and_drop(*all.barrier));
    }
    nothing_is_open();
    knows();
    phases.has_dropped_out(p.number);
    of.log.add("has dropped out");
  }

  // ---- checks of the answers

  void in_time(nanos began, bool gone_on) const {
    if (may_be_late() && !of.whole.calm()) return waits(false);
    actor waited = *this;
    waited.asked = began;
    waited.judge_wait(gone_on, false);
  }

  void goes_on() {
    of.log.add("goes on");
    nothing_is_open();
    knows();
    phases.passes(p.number, since, of.here.now(), asked, soon());
  }

  void in_vain() {
    of.log.add("waits no longer");
    me.unheard_since = std::min(me.unheard_since, asked);
    if (me.dropped) phases.in_doubt(p.number);  // perhaps it had never joined
    phases.not_in_time(p.number, since, of.here.now(), of.disturbed(p), of.bound());
  }

  // Applies where nothing but lost answers went wrong, whatever was not answered since then.
  void judge_how_soon() {
    using kind = fault_plan::kind;
    const auto& faults = of.whole.faults;
    const bool only_cuts = std::all_of(faults.begin(), faults.end(),
                                       [](const auto& f) { return f.what == kind::cut; });
    const bool only_answers = only_cuts && of.whole.network.slow_request == 0 &&
                              of.whole.network.slow_reply == 0 &&
                              of.whole.machine.slow_permille == 0;
    const nanos first = std::min(me.unheard_since, asked);
    if (of.whole.seed >= troubled_seeds && only_answers && does.threads.size() == 1 &&
        of.here.now() < first + does.lease * 9 / 10)
      phases.told_too_soon(p.number, me.drops ? first : never);
    nothing_is_open();
  }

  // A participant asks at least once a second, and then also watches those that have come.
  nanos all_are_watched() const {
    nanos since_then = -1;
    for (const auto* const other : of.processes) {
      const auto came = of.used_at.find({s.name, other->number});
      if (!other->dead || came == of.used_at.end()) continue;
      if (came->second + 300 * millisecond < asked) continue;  // it was there at the first question
      since_then = std::max(since_then, came->second + second);
    }
    return since_then;
  }

  // Applies where the store sees deaths, and nothing else goes wrong.
  void learns_of_a_death() const {
    if (of.whole.seed < troubled_seeds || !of.whole.only_deaths()) return;
    const nanos known = std::max(of.last_death, all_are_watched());
    const nanos took = of.here.now() - std::max({known, since, asked});
    if (took <= 150 * millisecond) return;
    of.rules.violated("a participant gets the error of a death at once",
                      who() + " after " + std::to_string(took / millisecond) + " ms");
  }

  void is_told(errc code, bool unknown, const std::string& what) {
    if (code == errc::capacity_mismatch) {
      of.log.add("finds no room");
      knows();
      return phases.refused_as_full(p.number, since);
    }
    if (code == errc::lost) learns_of_a_death();
    if (code == errc::lost && unknown) judge_how_soon();
    if (code != errc::lost) me.unheard_since = std::min(me.unheard_since, asked);
    if (code == errc::lost && unknown) {
      phases.told_unknown(p.number);
    } else if (code == errc::lost) {
      knows();
      phases.told_broken(p.number);
    } else {
      phases.in_doubt(p.number);
    }
    judge_error(code, what);
  }
};

}  // namespace

barrier_deed how_to_meet(const process_plan& of, const step& s) {
  using meets = process_plan::meets;
  if (of.how == meets::twice) return barrier_deed::enter_and_leave;
  if (of.how == meets::with_a_limit) {
    return s.deed < 6 ? barrier_deed::async_arrive_and_wait : barrier_deed::async_stopped;
  }
  static constexpr barrier_deed calls[] = {
      barrier_deed::wait_for,   barrier_deed::wait_for,     barrier_deed::wait_until_stopped,
      barrier_deed::wait_for,   barrier_deed::async_arrive, barrier_deed::async_wait,
      barrier_deed::async_wait, barrier_deed::wait_for};
  if (s.deed < 7 || s.weight != 1) return calls[s.deed % 8];
  return s.how == step::style::callback ? barrier_deed::async_drop : barrier_deed::drop;
}

std::string_view word_of(barrier_deed d) noexcept {
  static constexpr std::string_view words[] = {
      "arrive, wait_for", "arrive, wait",    "async_arrive",
      "async_wait",       "async both",      "async both, stopped",
      "enter and leave",  "arrive_and_drop", "async_arrive_and_drop"};
  return words[static_cast<int>(d)];
}

void act_at_a_barrier(const actor& who, meeting& mine) {
  auto& notes = who.of.notes;
  auto& me = mine.participants[world::self()->name];
  participant_actor{{who},    mine, notes.phases.at(who.s.name), me, how_to_meet(who.does, who.s),
                    who.asked}
      .act();
}

}  // namespace simulation
