#include <algorithm>
#include <holdfast/holdfast.hpp>
#include <memory>
#include <thread>

#include "simulation/answers.hpp"
#include "simulation/encounters.hpp"
#include "simulation/ending_actor.hpp"
#include "simulation/meeting_actor.hpp"
#include "simulation/nested_actor.hpp"
#include "simulation/patience.hpp"
#include "simulation/scene.hpp"

namespace simulation {

namespace {

/// An operation that continues without a thread may keep its session open longer.
bool goes_on_without_a_thread(const process_plan& does) {
  return std::any_of(does.threads.begin(), does.threads.end(), [](const auto& t) {
    return std::any_of(t.steps.begin(), t.steps.end(), [](const auto& s) {
      using inside = step::inside;
      return s.more > 0 || s.what == inside::extend_late || s.what == inside::extend_late_to;
    });
  });
}

/// Nothing but the end of processes happens, which costs the others none of their locks.
bool only_others_die(const plan& p) {
  plan rest = p;
  rest.machine.slow_permille = 0;
  return rest.only_deaths();
}

class listener final : public holdfast::observer {
 public:
  listener(scene& of, const process& p) : of_(of), process_(p.number) {}
  void on_event(const holdfast::event& e) override {
    using kind = holdfast::event_kind;
    if (e.kind == kind::lost) of_.ended_at[process_] = of_.here.now();
    if (e.kind == kind::suspect) of_.doubted_at[process_] = of_.here.now();
    if (e.kind == kind::lost) loss(e);
    if (e.kind == kind::lost) loss_of_an_idle_one(e);
    if (e.kind == kind::lost && e.leases == 0 && e.fence != 0) loss_without_a_lease(e);
    count(e);
    const bool good = e.kind == kind::acquired || e.kind == kind::released ||
                      e.kind == kind::gave_up || e.kind == kind::busy || e.kind == kind::renewed;
    if (of_.log.on() && !good) {
      of_.log.add("(" + std::string(to_string(e.kind)) + " " + std::string(e.name) + " " +
                  std::string(e.detail) + ")");
    }
    const bool in_doubt = e.kind == kind::suspect || e.kind == kind::renew_failed;
    if (in_doubt && e.lock_kind == "mutex" && is_redlock(e) && has_one_store_away(of_.whole)) {
      of_.rules.violated("a redlock is not in doubt while a majority answers",
                         std::string(to_string(e.kind)) + " " + std::string(e.name));
    }
    if (e.kind == kind::lost && is_redlock(e)) {
      judge_lost_redlock(of_.rules, of_.whole, std::string(e.name));
    }
    if (e.kind == kind::lost && is_redlock(e) && bears_its_outages(of_.whole)) {
      of_.rules.violated("a redlock is not lost by an outage that is short beside its lease",
                         std::string(e.name));
    }
    const bool due =
        (e.kind == kind::lost && (of_.loses || of_.rules.was_taken(std::string(e.name)))) ||
        (e.kind == kind::deadlock && of_.notes.rings);
    const bool spared = e.kind == kind::lost && of_.whole.seed >= blended_seeds &&
                        only_others_die(of_.whole) && of_.whole.has_only_locks();
    if (!good && !due && (of_.whole.calm() || spared)) {
      const bool at_a_barrier = of_.whole.names.front().kind == lock_kind::barrier;
      of_.rules.violated("each event is true",
                         (at_a_barrier ? "at a barrier: " : "") + std::string(to_string(e.kind)) +
                             " " + std::string(e.name) + ": " + std::string(e.detail));
    }
  }

 private:
  bool is_redlock(const holdfast::event& e) const {
    for (std::size_t i = 0; i < of_.whole.names.size(); ++i) {
      if (e.name == scene::name_of(i)) return of_.whole.names[i].kind == lock_kind::redlock;
    }
    return false;
  }

  void count(const holdfast::event& e) {
    using kind = holdfast::event_kind;
    const long more = e.kind == kind::acquired   ? 1
                      : e.kind == kind::released ? -1
                      : e.kind == kind::lost || e.kind == kind::release_failed
                          ? -static_cast<long>(e.leases)
                          : 0;
    if (e.kind == kind::acquired) begins(e);
    if (more != 0) of_.open_leases[{process_, std::string(e.name)}] += more;
  }

  // A consensus store that was restored gives fences again.
  void begins(const holdfast::event& e) {
    const auto& all = of_.whole.faults;
    const bool again = std::any_of(all.begin(), all.end(), [](const fault_plan& f) {
      return f.what == fault_plan::kind::restore;
    });
    if (again) ++of_.begun_leases[{process_, std::string(e.name), e.fence}];
  }

  // The loss of an idle lock affects no lease.
  void loss(const holdfast::event& e) {
    const bool one_at_a_time = e.lock_kind == "mutex" || e.lock_kind == "recursive_mutex";
    if (!one_at_a_time || e.fence == 0 || e.leases == 0) return;
    const std::tuple it{process_, std::string(e.name), e.fence};
    const int leases = std::max(1, of_.begun_leases[it]);
    if (of_.given_back.contains(it) && leases == 1) {
      return of_.rules.violated("the library reports no loss of a lock that was given back",
                                std::string(e.name));
    }
    if (++of_.told_lost[it] <= leases) return;
    of_.rules.violated("the library reports a loss once", std::string(e.name));
  }

  void loss_of_an_idle_one(const holdfast::event& e) const {
    // A release that nobody waits for learns of the loss later; so does a lock that ended with its
    // connection while its release was under way.
    if (of_.whole.store == store_kind::advisory) return;
    const auto& does = of_.whole.processes[static_cast<std::size_t>(process_) - 1];
    if (e.leases == 0 || does.unconfirmed || of_.whole.about == theme::endings) return;
    for (std::size_t i = 0; i < of_.whole.names.size(); ++i) {
      const auto& n = of_.whole.names[i];
      const bool judged = e.name == scene::name_of(i) && n.kind < lock_kind::latch;
      // The thread that tells it may have found it out before the lease was given back.
      const nanos late = of_.whole.machine.stall_per_100k == 0 ? 20 * millisecond : second;
      const bool lately = of_.here.now() < of_.used_at[{i, process_}] + late;
      if (!judged || of_.users[{i, process_}] > 0 || lately) continue;
      of_.rules.violated("the library reports no loss of a lease that no thread has",
                         std::string(e.name));
    }
  }

  // A thread that has not begun to release the lock has its lease.
  void loss_without_a_lease(const holdfast::event& e) const {
    if (!of_.rules.relies_on(process_, std::string(e.name), e.fence)) return;
    of_.rules.violated("the library counts the lease of a thread when it reports its loss",
                       std::string(e.name));
  }

  scene& of_;
  const int process_;
};

/// Checks the books when the sessions that are declared after it have closed.
struct when_its_sessions_have_gone {
  scene& of;
  const process& p;
  const process_plan& does;
  ~when_its_sessions_have_gone() { of.judge_open_leases(p, does); }
};

std::uint32_t lost_messages(const process& p) {
  const auto met = [&](trouble t) { return p.met[static_cast<std::size_t>(t)]; };
  return met(trouble::lost_request) + met(trouble::lost_reply);
}

bool asks_otherwise(const process_plan& does) {
  return std::any_of(does.threads.begin(), does.threads.end(), [](const auto& t) {
    return std::any_of(t.steps.begin(), t.steps.end(), [](const auto& s) { return s.otherwise; });
  });
}

}  // namespace

void scene::live(process& p, const process_plan& does) {
  if (!does.renew || does.max_hold != never) loses = true;
  holdfast::session_options o;
  o.lease = in_ms(does.session_lease > 0 ? does.session_lease : does.lease);
  o.detect_deadlocks = whole.about == theme::deadlocks;
  o.observer = std::make_shared<listener>(*this, p);
  const when_its_sessions_have_gone the_books{*this, p, does};
  std::vector<holdfast::session> sessions;
  for (std::size_t i = 0; i < stores.size(); ++i) {
    auto store = stores[i]->connect(p);
    if (whole.seed >= accounting_seeds) store = said.heard(p, i, std::move(store));
    sessions.emplace_back(std::move(store), o);
  }
  if (whole.about == theme::endings) return end_early(p, does, std::move(sessions));
  belongings all;
  for (std::size_t i = 0; i < whole.names.size(); ++i) {
    all.of_locks.push_back(make_locks(*this, sessions[whole.names[i].store], i, does));
    all.of_meetings.push_back(make_meeting(*this, sessions, i, all, does));
  }
  for (std::size_t i = 0; asks_otherwise(does) && i < whole.names.size(); ++i) {
    all.otherwise.push_back(make_locks(*this, sessions[whole.names[i].store], i, does, true));
  }
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < does.threads.size(); ++t) {
    threads.emplace_back([this, &p, &all, &does, t] {
      world::self()->name = "t" + std::to_string(t + 1);
      for (const auto& one : does.threads[t].steps) {
        here.sleep(one.think);
        const auto before = p.met;
        const actor who{*this, p, does, one, name_of(one.name), here.now()};
        uses(p, one, true);
        if (whole.about == theme::deadlocks) {
          act_nested(who, all.of_locks);
        } else if (whole.names[one.name].kind < lock_kind::latch) {
          act_on_locks(who, one.otherwise ? all.otherwise : all.of_locks);
        } else {
          act_at_meeting(who, all);
        }
        uses(p, one, false);
        note(p, does, one, before);
      }
    });
  }
  for (auto& t : threads) t.join();
  judge_commands(p, does);
  for (auto& [i, book] : notes.phases) {
    if (whole.calm()) book.a_process_goes();
  }
  if (whole.about == theme::barriers) notes.phases.begin()->second.ends(p.number);
  for (std::size_t i = 0; i < all.of_meetings.size(); ++i) {
    // The phases for which they arrived do not end without them.
    if (!all.of_meetings[i].arrivals.empty()) notes.barriers.at(i).takes_out();
  }
  all = {};
  log.add("closes its session");
  if (whole.seed < unlike_seeds) return;
  // A release that was not confirmed may have been lost before.
  const bool all_count = whole.seed >= following_seeds && does.unconfirmed;
  const auto before = all_count ? 0 : lost_messages(p);
  sessions.clear();
  judge_close(p, does, lost_messages(p) - before);
  if (whole.seed >= form_seeds) judge_end_of_sessions(p);
}

// What goes on without a thread may keep a session until its lease has ended.
void scene::judge_end_of_sessions(const process& p) {
  if (whole.store >= store_kind::postgres) return;  // drivers with connections of their own
  const auto open = [&] {
    return std::any_of(stores.begin(), stores.end(),
                       [&](const auto& at) { return at->sessions_of(p) > 0; });
  };
  const nanos until = here.now() + 2 * whole.longest_lease() + 10 * second;
  while (open() && (here.now() < until || here.now() < disturbed(p) + 10 * second)) {
    here.sleep(second);
  }
  if (!open() || whole.network.slowest_late > 10 * second) return;
  rules.violated("a session ends when nobody uses it any more", "P" + std::to_string(p.number));
}

// A release of an idle lock that is under way keeps the session until it is answered.
void scene::judge_close(const process& p, const process_plan& does, std::uint32_t lost) {
  if (p.dead || goes_on_without_a_thread(does) || stores.front()->sessions_of(p) > 0) return;
  std::string left;
  for (std::size_t i = 0; i < whole.names.size(); ++i) {
    if (whole.names[i].kind >= lock_kind::latch) continue;
    if (stores.front()->users(name_of(i))[p.number] > 0) left += " " + at_the_stores(name_of(i));
  }
  if (!left.empty()) judge_what_was_lost(rules, whole, lost, "P" + std::to_string(p.number) + left);
}

void scene::judge_open_leases(const process& p, const process_plan& does) {
  if (p.dead || goes_on_without_a_thread(does) || does.unconfirmed || whole.about == theme::endings)
    return;
  for (std::size_t i = 0; i < whole.names.size(); ++i) {
    const auto at = open_leases.find({p.number, name_of(i)});
    if (at == open_leases.end() || at->second == 0 || whole.names[i].kind >= lock_kind::latch) {
      continue;
    }
    rules.violated("an observer gets as many events of ends of leases as of beginnings",
                   "P" + std::to_string(p.number) + ": " + name_of(i) + ": " +
                       std::to_string(at->second) + " are open when all have gone");
  }
}

// Begins all its operations, and closes before they have ended.
void scene::end_early(process& p, const process_plan& does,
                      std::vector<holdfast::session> sessions) {
  const auto all = std::make_shared<begun>();
  pending.push_back({&p, all});
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < does.threads.size(); ++t) {
    threads.emplace_back([this, &p, &does, &s = sessions.front(), all, t] {
      world::self()->name = "t" + std::to_string(t + 1);
      for (const auto& one : does.threads[t].steps) {
        here.sleep(one.think);
        act_without_waiting({*this, p, does, one, name_of(one.name), here.now()}, s, all);
      }
    });
  }
  for (auto& t : threads) t.join();
  here.sleep(here.random().between(0, does.lease));
  log.add("closes its session");
  std::vector<holdfast::lease> kept;
  {
    const std::lock_guard guard{all->mutex};
    kept.swap(all->kept);
    all->closing = true;
  }
  if (here.random().one_in(2)) kept.clear();
  const nanos then = here.now();
  sessions.clear();
  kept.clear();
  log.add("has closed its session");
  if (whole.calm() && here.now() - then > 500 * millisecond) {
    rules.violated("a session ends at once where nothing goes wrong",
                   "P" + std::to_string(p.number) + " after " +
                       std::to_string((here.now() - then) / millisecond) + " ms");
  }
}

}  // namespace simulation
