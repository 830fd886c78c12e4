#include "simulation/actor.hpp"

#include <algorithm>

#include "simulation/patience.hpp"

namespace simulation {

namespace {

using holdfast::errc;

/// The longest time that the library takes, and that its threads take until they run.
constexpr nanos deadline_slack = 105 * millisecond;
/// The longest time of a request that gives up a wait, behind the requests that are under way.
constexpr nanos leaves_within = 40 * millisecond;
/// redlock_options::node_timeout.
constexpr nanos time_of_a_node = 200 * millisecond;
/// A thread that has waited longer by this time must come first.
constexpr nanos long_before = 300 * millisecond;

}  // namespace

void actor::judge_error(holdfast::errc code, const std::string& what) const {
  of.log.add("gets " + what);
  const bool had_a_limit = s.wait != never && code == errc::timed_out;
  const bool due_to_trouble = code == errc::unavailable || code == errc::lost || had_a_limit ||
                              code == errc::no_space || code == errc::read_only;
  const bool due_to_plan = code == errc::cancelled           ? s.stop_after != never
                           : code == errc::lost              ? of.loses || was_taken()
                           : code == errc::capacity_mismatch ? is_of_another_size()
                           : code == errc::kind_mismatch     ? meets_another_kind()
                           : code == errc::overloaded        ? does.max_waiters > 0
                           : code == errc::not_permitted
                               ? of.whole.refuses_row(s.name, asked, of.here.now())
                               : false;
  if (code == errc::cancelled) judge_stop();
  if (due_to_plan) return;
  if (due_to_trouble && !of.undisturbed(p, asked)) return;
  of.rules.violated("each error is true", "P" + std::to_string(p.number) + ": " + what);
}

// Where something goes wrong, the entry of a thread that has gone lasts for as long as its lease.
nanos actor::entries_stay() const {
  nanos stays = of.whole.calm() ? 0 : 2 * of.whole.longest_lease() + 10 * second;
  for (const auto& one : of.whole.processes) stays = std::max(stays, one.linger);
  return stays;
}

bool actor::is_of_another_size() const {
  return !s.clashes && of.sizes.differ(s.name, does.more_permits, asked - entries_stay());
}

// Of a redlock, only one node is used as another kind. A release that nobody waits for, as that of
// a redlock at a node, may arrive a moment later. In Redisson's layout a semaphore's count stays.
bool actor::meets_another_kind() const {
  if (of.whole.names[s.name].kind == lock_kind::redlock && !s.clashes) return false;
  const auto mine = s.clashes ? sizes_in_use::another_kind : does.more_permits;
  const nanos stays = std::max<nanos>(entries_stay(), 10 * millisecond);
  const bool for_ever = of.whole.store == store_kind::redisson;
  return of.sizes.clash(s.name, mine, for_ever ? 0 : asked - stays);
}

// Judges only waits for a lock: other operations have something to do before they end.
void actor::judge_stop() const {
  const auto kind = of.whole.names[s.name].kind;
  const bool all_are_judged = of.whole.seed >= dividing_seeds && !s.forces && !s.clashes;
  const bool of_one = (!s.several || all_are_judged) && kind < lock_kind::latch && of.whole.tells();
  const bool by_votes = kind == lock_kind::redlock && without_waiting();
  const nanos took = of.here.now() - asked;
  if (!(of_one || by_votes) || !of.punctual() || s.stop_after == never) return;
  if (took <= s.stop_after + (by_votes ? deadline_slack : leaves_within)) return;
  of.rules.violated("a wait ends soon after it was asked to stop",
                    name + ": after " + std::to_string(took / microsecond) + " us instead of " +
                        std::to_string(s.stop_after / microsecond));
}

// Whether a lock was taken away: this name, or any name if the step is about several.
bool actor::was_taken() const {
  const bool of_one = !s.several && of.whole.names[s.name].kind < lock_kind::latch;
  return of.rules.was_taken(of_one ? name : std::string());
}

std::stop_token actor::stop_in(nanos after) const {
  if (after == never) return {};
  std::stop_source source;
  of.here.start(p, "stopper", [w = &of.here, source, after]() mutable {
    w->sleep(after);
    source.request_stop();
  });
  return source.get_token();
}

void actor::waits(bool so) const {
  auto& waiting = of.waiting;
  const bool for_long = s.wait >= 200 * second && of.whole.names[s.name].kind < lock_kind::latch;
  if (so && (s.wait == never || for_long) && s.stop_after == never) waiting.emplace(name, &p);
  if (so) {
    if (!s.shared) of.together.writes(&p, asked);
    return of.line.push_back({world::self(), name, asked, s.shared, goes_first()});
  }
  std::erase_if(of.line, [](const auto& one) { return one.who == world::self(); });
  of.order.ends(world::self());
  for (auto i = waiting.begin(); i != waiting.end(); ++i) {
    if (i->first != name || i->second != &p) continue;
    waiting.erase(i);
    return;
  }
}

// Applies where the store orders single threads, and no notification is late. Not to a mutex: only
// one thread of each process is queued at the store. After a hold was taken away, the threads that
// were queued behind it are not queued at the store yet.
void actor::judge_order() const {
  const auto kind = of.whole.names[s.name].kind;
  const bool by_turns = kind == lock_kind::fair || kind == lock_kind::semaphore;
  if (!by_turns || s.several || was_taken() || !of.punctual() || !of.whole.tells()) return;
  for (const auto& other : of.line) {
    if (other.who == world::self() || other.name != name) continue;
    if (other.asked > asked - long_before) continue;
    passes_one("no waiter passes another that has waited for much longer", other,
               "asked " + later_than(other) + " after another one that still waits: ");
    return;
  }
}

int actor::goes_first() const {
  const auto& n = of.whole.names[s.name];
  if (n.prefers == 0) return 0;
  if (n.kind == lock_kind::election) return does.priority;
  return n.kind == lock_kind::shared && s.shared == (n.prefers == 1) ? 1 : 0;
}

// Applies where the store orders waiters by precedence, and no notification is late.
void actor::judge_preference() const {
  if (of.whole.names[s.name].prefers == 0 || s.several || !of.punctual() || !of.whole.tells())
    return;
  const nanos long_ago = of.here.now() - long_before;
  for (const auto& other : of.line) {
    if (other.name != name || other.goes_first <= goes_first() || other.asked > long_ago) continue;
    passes_one("no waiter passes another that has precedence", other, {});
    return;
  }
}

// Only readers with the same terms share a hold.
bool actor::shares_holds() const {
  const bool reads = of.whole.names[s.name].kind == lock_kind::shared && s.shared;
  const bool on_other_terms = std::any_of(does.threads.begin(), does.threads.end(), [](auto& t) {
    return std::any_of(t.steps.begin(), t.steps.end(), [](auto& one) { return one.otherwise; });
  });
  return reads && !on_other_terms && of.punctual() && of.whole.tells() && of.whole.renews();
}

void actor::reads_with_others() const {
  if (!shares_holds()) return;
  const bool behind = std::any_of(of.line.begin(), of.line.end(), [&](const auto& other) {
    return other.name == name && !other.shares && other.who->of == &p;
  });
  of.together.reads(world::self(), &p, name, asked, behind || of.at_several > 0);
}

// Nothing has changed the hold of the readers before it.
void actor::judge_sharing(std::uint64_t fence) const {
  const auto& whole = of.whole;
  const bool changes = std::any_of(does.threads.begin(), does.threads.end(), [](auto& t) {
    return std::any_of(t.steps.begin(), t.steps.end(), [](const step& one) {
      return one.what != step::inside::nothing || one.more > 0 || one.several || one.clashes;
    });
  });
  const bool judged = whole.seed >= dividing_seeds && goes_first() > 0 && shares_holds() &&
                      !changes && !was_taken() && does.max_hold == never;
  if (!judged || !of.rules.holds_only_others(p, name, fence, asked)) return;
  of.rules.violated("readers of a process that hold together have one fence",
                    name + ": " + std::to_string(fence));
}

// The process knows that a writer waits, so a reader that comes later must request its own hold.
void actor::judge_joining(std::uint64_t fence) const {
  const bool reads = of.whole.names[s.name].kind == lock_kind::shared && s.shared;
  if (!reads || !of.punctual() || !of.whole.tells()) return;
  judge_sharing(fence);
  const bool for_all = s.wait == never && s.stop_after == never;
  if (shares_holds() && !was_taken()) of.together.got(world::self(), fence, of.here.now(), for_all);
  // After a hold was taken away, threads are notified of nothing else.
  if (goes_first() > 0 || was_taken()) return;
  if (passes_a_writer("no reader passes a writer of its process that has long waited", true) ||
      of.rules.shared_since(name, fence) > asked - long_before) {
    return;
  }
  (void)passes_a_writer("no reader joins readers that a writer elsewhere has long waited for",
                        false);
}

// The writer is of the reader's process, or of another one.
bool actor::passes_a_writer(const char* rule, bool of_its_process) const {
  for (const auto& other : of.line) {
    const bool writes =
        other.name == name && !other.shares && (other.who->of == &p) == of_its_process;
    if (!writes || other.asked > asked - long_before) continue;
    passes_one(rule, other, "asked " + later_than(other) + " after a writer that still waits: ");
    return true;
  }
  return false;
}

std::string actor::later_than(const scene::in_line& other) const {
  return std::to_string((asked - other.asked) / millisecond) + " ms";
}

// Judges a moment later: the other waiter may have left, or its turn has come as well and the
// notification is on its way.
void actor::passes_one(const char* rule, const scene::in_line& other, std::string how) const {
  of.here.at(of.here.now() + 50 * millisecond, [&of = of, rule, other, how = std::move(how)] {
    if (std::find(of.line.begin(), of.line.end(), other) == of.line.end()) return;
    of.rules.violated(rule, other.name + ": " + how + of.at_the_stores(other.name));
  });
}

bool actor::no_thread_is_late() const {
  const auto& m = of.whole.machine;
  return m.slow_permille == 0 && m.preempt_permille == 0 && m.stall_per_100k == 0;
}

// The lease may have ended while this thread was on its way from the library. Judges a moment
// later, because the report may come after the check.
void actor::judge_first_check() const {
  if (!no_thread_is_late() || !of.keeps_all() || p.steady_since >= asked || was_taken()) return;
  const nanos then = of.here.now();
  of.here.at(then + way_to_the_caller, [&of = of, process = p.number, then, name = name] {
    const auto told = of.ended_at.find(process);
    if (told != of.ended_at.end() && told->second + way_to_the_caller >= then) return;
    of.rules.violated("no caller gets a lease that has already ended", name);
  });
}

// Checks the duration of a wait with a limit.
void actor::judge_wait(bool got, bool stoppable) const {
  waits(false);
  const nanos took = of.here.now() - asked;
  if (!got) of.log.add("does not get " + name);
  if (stoppable && of.whole.seed >= dividing_seeds) judge_stop();
  if (s.wait == never) return;
  if (!got && took < s.wait && !(stoppable && s.stop_after != never)) {
    of.rules.violated("a wait does not end before its time",
                      name + " after " + std::to_string(took / microsecond) + " us");
  }
  if (p.steady_since > asked || p.paused_until > asked) return;
  const bool by_votes = of.whole.names[s.name].kind == lock_kind::redlock;
  // MariaDB's client gives a new connection a second at least.
  const nanos longest_command = of.whole.store == store_kind::mariadb
                                    ? std::max(second, of.whole.command_timeout)
                                    : of.whole.command_timeout;
  const nanos one_try = of.whole.calm() ? 0
                        : by_votes      ? rounds_of_a_try * time_of_a_node
                                        : commands_of_a_try() * longest_command;
  // Each command of a try waits for a thread, which may be late.
  const int late = s.wait == 0 && !no_thread_is_late() ? commands_of_a_try() : 1;
  nanos most = (s.wait == 0 ? one_try : s.wait) + late * deadline_slack;
  // A session calls a server with advisory locks one call after the other, and each call may
  // connect and ask twice. So a call comes after those of three threads and the session's own, and
  // after those of each further thread.
  if (of.whole.store == store_kind::advisory && !of.whole.calm()) {
    const auto more = std::max<std::ptrdiff_t>(0, std::ssize(does.threads) - 3);
    most += (9 + 4 * more) * of.whole.command_timeout;
  }
  if (took > most) {
    of.rules.violated("a wait ends in time", "P" + std::to_string(p.number) + ": " + name +
                                                 " took " + std::to_string(took / microsecond) +
                                                 " us instead of " +
                                                 std::to_string(s.wait / microsecond));
  }
}

// All threads of a process that wait behind each other know since when the store is away, and so do
// all votes of a redlock. The holder before them may still have relied on its lease.
void actor::judge_outage() const {
  const auto& whole = of.whole;
  const auto kind = whole.names[s.name].kind;
  const bool one_lock = kind == lock_kind::mutex || kind == lock_kind::redlock;
  plan rest = whole;
  rest.faults.clear();
  const bool only_away = rest.calm() && rest.machine.slow_permille == 0;
  if (s.wait != never || s.stop_after != never || s.several || !one_lock || !only_away) return;
  if (whole.store >= store_kind::contenders) return;
  const auto away = longest_outage(whole, static_cast<std::size_t>(p.number) - 1);
  constexpr nanos store_timeout = 10 * second;
  const nanos by = std::max(asked, away.from) + store_timeout + whole.longest_lease() +
                   2 * whole.command_timeout + 3 * second;
  if (std::min(of.here.now(), away.until) <= by) return;
  of.rules.violated("threads that wait behind each other give up on a store together",
                    name + ": " + std::to_string((of.here.now() - by) / millisecond) + " ms later");
}

// Counts commands that are sent one after the other. A try at a store of contenders enters the
// queue, reads it and leaves. A try of two locks requests both, and releases the first one.
int actor::commands_of_a_try() const {
  const auto& whole = of.whole;
  const auto at = [&](std::size_t i) {
    const auto where = whole.names[i].store;
    return where == 0 ? whole.store : whole.others[where - 1];
  };
  // A session calls a server with advisory locks one call after the other, each over a new
  // connection: a try comes after the calls of three threads, and after the session's own.
  const auto commands = [](store_kind k) {
    return k == store_kind::advisory ? 12 : k >= store_kind::contenders ? 3 : 1;
  };
  const bool two_locks = whole.names[s.name].kind == lock_kind::both || s.several;
  // Without a thread, a try of several locks lasts up to as many commands for each of them.
  const int names = s.takes_several_without_a_thread() ? static_cast<int>(whole.names.size()) : 1;
  const auto of_all = [&](store_kind k) {
    return k == store_kind::advisory ? commands(k) - 1 + names : names * commands(k);
  };
  if (!two_locks || whole.others.empty()) return of_all(at(s.name));
  return 1 + commands(at(0)) + commands(at(1));
}

cost::~cost() {
  const auto& all = who_.of.whole;
  if (!all.calm() || !all.others.empty() || all.store >= store_kind::contenders) return;
  if (world::self()->commands <= most_) return;
  who_.of.rules.violated("an operation costs no more commands than its header says",
                         who_.name + ": " + what_);
}

}  // namespace simulation
