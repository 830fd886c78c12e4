#include "simulation/meeting_actor.hpp"

#include <algorithm>
#include <mutex>

#include "simulation/barrier_actor.hpp"
#include "simulation/encounters.hpp"
#include "simulation/permit_actor.hpp"
#include "simulation/rate_actor.hpp"
#include "simulation/spread_actor.hpp"

namespace simulation {

namespace {

using holdfast::errc;

std::string name_of_thread(const process& p) {
  return "P" + std::to_string(p.number) + "." + world::self()->name;
}

std::string note_of(const process_plan& does, const plan& whole) {
  return "of P" + std::to_string(&does - whole.processes.data() + 1);
}

struct latch_actor : actor {
  holdfast::latch& at;
  latch_book& book;

  void act() const {
    if (s.deed < 3) return count_down();
    const auto before = book.certain();
    if (s.deed == 3 || s.deed == 4) {
      const cost one(*this, "try_wait, remaining", 1);
      if (s.deed == 3) return book.seen_open(at.try_wait(), before);
      if (without_waiting()) return book.seen_remaining(value_of(async_remaining(at)), before);
      return book.seen_remaining(at.remaining(), before);
    }
    const bool open = wait();
    judge_wait(open, true);
    if (open) {
      book.waited_in_vain(asked, of.here.now(), soon());
      // Once the trouble is over, a poll or two are enough. Before that, the client waits for the
      // answer to a new connection, which may be lost.
      const bool connects = of.whole.store == store_kind::postgres;
      if (of.whole.seed >= freezing_seeds && of.whole.tells())
        book.waited_in_vain(std::max(asked, of.disturbed(p)), of.here.now(),
                            (connects ? 6 : 3) * second);
      return book.seen_open(true, before);
    }
    if (s.stop_after != never || of.disturbed(p) > asked) return;
    book.waited_in_vain(asked, of.here.now(), of.bound());
  }

  bool wait() const {
    if (without_waiting()) return in_time(async_wait(at, limit(), stop())).has_value();
    if (s.wait != 0) return at.wait_for(duration(s.wait), stop());
    const cost one(*this, "a try", 1);
    return at.wait_for(duration(0));
  }

  // What was counted before is forgotten, and what is counted meanwhile may be.
  void remove() const {
    of.log.add("removes the latch");
    book.forgot();
    const cost one(*this, "remove", 1);
    if (without_waiting()) {
      (void)value_of(async_remove(at));
    } else {
      at.remove();
    }
    book.forgot();
    of.log.add("has removed it");
  }

  void count_down() const {
    if (s.form == 1) return remove();
    of.log.add("counts down " + std::to_string(s.weight));
    book.begins(s.weight);
    try {
      const cost one(*this, "count_down", 1);
      if (without_waiting()) {
        (void)value_of(async_count_down(at, s.weight));
      } else {
        at.count_down(s.weight);
      }
    } catch (const holdfast::error& e) {
      const bool too_many = e.reason() == errc::invalid_argument;
      book.refused(s.weight, too_many);
      if (!too_many && !e.outcome_unknown()) book.not_counted(s.weight);
      if (!too_many) throw;
      of.log.add("that is too many");
      return;
    }
    book.counted(s.weight, of.here.now());
    of.log.add("counted down");
  }
};

struct barrier_actor : actor {
  meeting& all;
  barrier_book& book;

  // After a time-out or an error the thread stays away: otherwise its later arrivals would belong
  // to other phases.
  void act() {
    const auto me = name_of_thread(p);
    if (book.out(me)) return;
    try {
      meet(me);
    } catch (...) {
      book.leaves(me);
      throw;
    }
  }

  void meet(const std::string& me) {
    of.log.add("arrives");
    book.begins(me);
    auto* const phases = of.notes.phases_of(s.name);
    if (phases != nullptr) phases->begins(p.number, me);
    if (s.deed == 7) {
      book.drops(me);
      book.leaves(me);
      all.barrier->arrive_and_drop();
      book.arrived(of.here.now());
      if (phases != nullptr) phases->has_dropped_out(p.number);
      return of.log.add("has dropped out");
    }
    auto mine = all.barrier->arrive();
    book.arrived(of.here.now());
    of.log.add("has arrived");
    try {
      if (all.barrier->wait_for(mine, duration(s.wait))) {
        of.log.add("goes on");
        if (phases != nullptr) {
          phases->knows(p.number, me);
          phases->passes(p.number, asked, of.here.now(), asked, soon());
        }
        return book.goes_on(me, of.whole.calm(), of.whole.names[s.name].at_once);
      }
    } catch (...) {
      all.arrivals.push_back(std::move(mine));
      throw;
    }
    of.log.add("waits no longer");
    if (of.whole.calm()) book.waited_in_vain(me, of.here.now(), of.bound());
    book.leaves(me);
    all.arrivals.push_back(std::move(mine));
  }
};

// All waiters are notified of several tokens together.
int tokens_for(const actor& who) {
  const bool notifies_all = who.s.deed >= 2 && who.of.whole.seed >= news_seeds;
  return notifies_all ? static_cast<int>(who.s.weight) : 1;
}

struct condition_actor : actor {
  holdfast::condition_variable& at;
  holdfast::mutex& mutex;
  condition_book& book;
  int id = 0;
  std::uint64_t fence = 0;

  void act() {
    std::unique_lock lock{mutex};
    try {
      holds();
      if (s.deed < 4) {
        put(lock);
      } else {
        take(lock);
      }
    } catch (...) {
      of.rules.given_up(id);  // before the mutex is unlocked
      throw;
    }
    of.rules.given_up(id);
  }

  void holds() {
    const nanos then = of.here.now();
    mutex.check();
    // A wait that could not be queued never released the mutex.
    if (id != 0 && mutex.fence() == fence) return of.rules.kept(id, then);
    of.rules.given_up(id);
    fence = mutex.fence();
    id = of.rules.granted({&p, scene::name_of(s.name - 1), 1, 1, fence, asked, mutex.lost()}, then);
  }

  void put(std::unique_lock<holdfast::mutex>& lock) {
    of.log.add("puts a token");
    const bool was_sure = std::exchange(book.sure, false);
    book.tokens += tokens_for(*this);
    if (s.deed % 2 == 0) {
      of.rules.given_up(id);
      lock.unlock();
    }
    const cost one(*this, "notify", 1);
    try {
      if (s.deed < 2) {
        (void)at.notify_one();
      } else {
        (void)at.notify_all();
      }
    } catch (...) {
      book.sent(false, false);
      throw;
    }
    book.sent(true, was_sure);
    of.log.add("has notified");
  }

  // While it waits, the thread is a waiter that must be woken.
  void take(std::unique_lock<holdfast::mutex>& lock) {
    bool waits = false;
    const auto there_is_one = [&] {
      asked = std::max(asked, std::exchange(looked, of.here.now()));
      holds();
      if (book.tokens == 0 && !std::exchange(waits, true)) book.waits(p.number, true);
      if (book.tokens == 0) of.rules.put_aside(id);
      return book.tokens > 0;
    };
    bool got = false;
    try {
      got = at.wait_for(lock, stop(), duration(s.wait), there_is_one);
    } catch (...) {
      if (waits) book.waits(p.number, false);
      throw;
    }
    if (waits) book.waits(p.number, false);
    if (got) --book.tokens;
    of.log.add(got ? "takes a token" : "finds no token");
  }

  nanos looked = 0;
};

/// The same with a lease, and without a waiting thread.
struct async_condition_actor : actor {
  holdfast::condition_variable& at;
  holdfast::mutex& mutex;
  condition_book& book;
  holdfast::lease held{};
  int id = 0;

  void act() {
    try {
      held = mutex.acquire();
      holds();
      if (s.deed < 4) {
        put();
      } else {
        take();
      }
    } catch (...) {
      of.rules.given_up(id);  // before the mutex is released
      throw;
    }
    of.rules.given_up(id);
  }

  void holds() {
    const nanos then = of.here.now();
    held.check();
    id = of.rules.granted({&p, scene::name_of(s.name - 1), 1, 1, held.fence(), asked, held.lost()},
                          then);
  }

  void put() {
    of.log.add("puts a token");
    const bool was_sure = std::exchange(book.sure, false);
    book.tokens += tokens_for(*this);
    if (s.deed % 2 == 0) {
      of.rules.given_up(id);
      (void)held.release();
    }
    try {
      (void)value_of(s.deed < 2 ? async_notify_one(at) : async_notify_all(at));
    } catch (...) {
      book.sent(false, false);
      throw;
    }
    book.sent(true, was_sure);
    of.log.add("has notified");
  }

  void take() {
    const nanos until = of.here.now() + s.wait;
    bool late = false;
    while (book.tokens == 0 && !late) late = wait_once(until - of.here.now());
    if (book.tokens > 0) --book.tokens;
    of.log.add(late ? "is told that its time is over" : "takes a token");
  }

  // True if the wait timed out; it has the mutex all the same.
  bool wait_once(nanos at_most) {
    of.rules.given_up(id);
    asked = of.here.now();
    const auto longest = holdfast::wait_limit(duration(std::max<nanos>(at_most, 0)));
    book.waits(p.number, true);
    auto how = async_wait(at, std::move(held), longest, stop()).future().get();
    book.waits(p.number, false);
    if (!how) throw holdfast::error(how.error());
    held = std::move(how->held);
    holds();
    return how->status == std::cv_status::timeout;
  }
};

/// Waits without a thread, and with a mutex of a session of its own, which ends before the wait
/// does.
struct leaving_condition_actor : actor {
  holdfast::condition_variable& at;
  condition_book& book;
  int id = 0;

  void act() {
    holdfast::session_options o;
    o.lease = in_ms(does.lease);
    std::optional<holdfast::session> own;
    own.emplace(of.stores[of.whole.names[s.name].store]->connect(p), o);
    std::optional<holdfast::mutex> mutex(std::in_place, *own, scene::name_of(s.name - 1));
    auto held = mutex->acquire();
    const nanos then = of.here.now();
    held.check();
    id = of.rules.granted({&p, scene::name_of(s.name - 1), 1, 1, held.fence(), asked, held.lost()},
                          then);
    of.rules.given_up(id);
    of.log.add("waits, and ends the session of the mutex");
    auto waits = async_wait(at, std::move(held), limit()).future();
    const nanos leaves = of.here.now() + s.hold;
    while (of.here.now() < leaves && waits.wait_for(duration(0)) != std::future_status::ready) {
      of.here.sleep(std::min(10 * millisecond, leaves - of.here.now()));
    }
    of.closed_early.insert(p.number);
    mutex.reset();
    own.reset();
    of.log.add("has ended the session of the mutex");
    const auto how = waits.get();
    if (how) return goes_on(how->held);
    if (how.error().code != errc::cancelled) judge_error(how.error().code, how.error().what);
  }

  // It was woken before the session ended, and has the mutex.
  void goes_on(const holdfast::lease& held) {
    const nanos then = of.here.now();
    held.check();
    id = of.rules.granted({&p, scene::name_of(s.name - 1), 1, 1, held.fence(), asked, held.lost()},
                          then);
    if (book.tokens > 0) --book.tokens;
    of.rules.given_up(id);
    of.log.add("goes on");
  }
};

struct election_actor : actor {
  holdfast::election& at;
  election_book& book;
  int id = 0;

  void act() {
    if (s.deed < 6) return campaign();
    if (s.deed == 6) {
      const cost one(*this, "current", 1);
      const auto now = without_waiting() ? value_of(async_current(at)) : at.current();
      if (now) is_shown(*now);
      return;
    }
    auto seen = at.observe();
    std::uint64_t last = 0;
    const nanos began = of.here.now();
    const bool calm = of.whole.calm() && of.whole.store != store_kind::contenders;
    const nanos longest = s.wait == never ? second : s.wait;
    if (of.whole.seed >= unlike_seeds && s.hold >= second) {
      const auto first = seen.next_for(std::chrono::milliseconds(100));
      if (first) book.seen(name, began, last, first->term, first->after_gap, calm);
      if (first) last = first->term;
      of.here.sleep(s.hold);
    }
    while (auto next = next_of(seen, longest)) {
      of.log.add("sees the term " + std::to_string(next->term));
      is_shown(*next);
      book.seen(name, began, last, next->term, next->after_gap, calm);
      last = next->term;
    }
    if (calm && of.punctual()) book.seen_no_more(name, began, last, of.here.now());
  }

  void is_shown(const holdfast::leader& one) const {
    if (of.whole.seed < form_seeds) return;
    book.shown(name, one.term, static_cast<int>(one.pid) - 1000, one.note);
  }

  std::optional<holdfast::leader> next_of(holdfast::leaders& seen, nanos longest) {
    asked = of.here.now();
    std::optional<holdfast::leader> next;
    if (!without_waiting()) {
      next = seen.next_for(duration(longest));
    } else {
      auto how = async_next(seen, holdfast::wait_limit(duration(longest))).future().get();
      if (!how && how.error().code != errc::timed_out && how.error().code != errc::busy)
        throw holdfast::error(how.error());
      if (how) next = std::move(*how);
    }
    judge_wait(next.has_value(), false);
    return next;
  }

  std::optional<holdfast::leadership> campaign_for_it() const {
    if (without_waiting()) return in_time(async_campaign(at, limit(), stop()));
    if (s.wait == never) return at.campaign(stop());
    if (s.wait == 0) return at.try_campaign();
    return at.campaign_for(duration(s.wait), stop());
  }

  // The work ends when it is done or asked to stop. If the lead was lost, the candidate asks again.
  void lead_in_turn() {
    waits(true);
    at.on_leader(
        [&](const std::stop_token& end, const holdfast::leadership& mine) {
          waits(false);
          leads(mine, &end);
        },
        stop());
    waits(false);
  }

  void campaign() {
    if (s.form % 2 == 1 && s.wait == never && !without_waiting()) return lead_in_turn();
    waits(true);
    std::optional<holdfast::leadership> mine;
    try {
      mine = campaign_for_it();
    } catch (...) {
      judge_wait(true, true);
      throw;
    }
    judge_wait(mine.has_value(), true);
    if (!mine) return;
    judge_preference();
    leads(*mine, nullptr);
    if (s.back == step::end::destroy) return;
    const auto term = mine->term();
    const auto e = mine->resign();
    if (e) judge_error(static_cast<errc>(e.value()), "resign: " + e.message());
    if (!e) book.resigned(term, of.here.now());
  }

  void leads(const holdfast::leadership& mine, const std::stop_token* end) {
    book.leads(mine.term(), asked, of.here.now(), p.number, note_of(does, of.whole));
    nanos then = of.here.now();
    mine.check();
    id = of.rules.granted({&p, name, 1, 1, mine.term(), asked, mine.lost()}, then);
    for (int i = 0; i < 4 && (end == nullptr || !end->stop_requested()); ++i) {
      of.here.sleep(s.hold / 4);
      then = of.here.now();
      mine.check();
      of.rules.still_held(id, then);
    }
    of.rules.given_up(id);
    of.log.add("resigns");
  }
};

void act_at(const actor& who, belongings& all) {
  const std::size_t i = who.s.name;
  auto& mine = all.of_meetings[i];
  auto& notes = who.of.notes;
  if (mine.latch) return latch_actor{{who}, *mine.latch, notes.latches.at(i)}.act();
  if (who.of.whole.about == theme::barriers) return act_at_a_barrier(who, mine);
  if (mine.barrier) return barrier_actor{{who}, mine, notes.barriers.at(i)}.act();
  if (mine.election) return election_actor{{who}, *mine.election, notes.elections.at(i)}.act();
  if (mine.condition && who.s.otherwise) {
    return leaving_condition_actor{{who}, *mine.condition, notes.conditions.at(i)}.act();
  }
  if (mine.condition && who.without_waiting()) {
    return async_condition_actor{
        {who}, *mine.condition, *all.of_locks[i - 1].mutex, notes.conditions.at(i)}
        .act();
  }
  if (mine.condition) {
    return condition_actor{
        {who}, *mine.condition, *all.of_locks[i - 1].mutex, notes.conditions.at(i)}
        .act();
  }
  if (mine.expiring) return act_by_permits(who, all);
  if (mine.redlock || mine.both) return act_across_stores(who, all);
  act_by_rates(who, all);
}

}  // namespace

void act_at_meeting(const actor& who, belongings& all) {
  try {
    act_at(who, all);
  } catch (const holdfast::error& e) {
    who.waits(false);
    who.of.rules.given_up_by(world::self());
    who.judge_error(e.reason(), e.what());
  }
}

meeting make_meeting(scene& of, const std::vector<holdfast::session>& sessions, std::size_t i,
                     const belongings& before, const process_plan& does) {
  meeting one;
  const auto& s = sessions.front();
  const auto& n = of.whole.names[i];
  const auto name = scene::name_of(i);
  if (n.kind == lock_kind::latch) {
    holdfast::latch_options o;
    if (does.keep > 0) o.keep = std::chrono::seconds(does.keep / second);
    one.latch = std::make_unique<holdfast::latch>(s, name, n.capacity, o);
  }
  if (n.kind == lock_kind::election) {
    holdfast::election_options o;
    if (n.prefers != 0) o.priority = does.priority;
    if (does.session_lease > 0) o.lease = in_ms(does.lease);
    if (of.whole.seed >= form_seeds) o.note = note_of(does, of.whole);
    one.election = std::make_unique<holdfast::election>(s, name, o);
  }
  if (n.kind == lock_kind::limiter) {
    one.limiter = make_limiter(s, name, n);
    one.session = s;
  }
  if (n.kind == lock_kind::condition) {
    one.condition = std::make_unique<holdfast::condition_variable>(s, name);
  }
  if (n.kind == lock_kind::barrier) {
    holdfast::barrier_options o;
    if (does.session_lease > 0) o.lease = in_ms(does.lease);
    if (n.at_once) {
      o.on_completion = [&of, i] {
        if (auto* const phases = of.notes.phases_of(i)) phases->completes();
        if (of.whole.about != theme::barriers) of.notes.barriers.at(i).completes(of.whole.calm());
      };
    }
    one.barrier = std::make_unique<holdfast::barrier>(s, name, n.capacity, o);
    one.twice = std::make_unique<holdfast::double_barrier>(s, name, n.capacity, o);
  }
  if (n.kind == lock_kind::redlock) {
    holdfast::redlock_options o;
    o.lease = in_ms(of.whole.longest_lease());
    one.redlock = std::make_unique<holdfast::redlock>(sessions, name, o);
  }
  if (n.kind == lock_kind::expiring) {
    one.expiring = std::make_unique<holdfast::expiring_semaphore>(
        s, scene::name_of(own_name(of.whole, i)), n.capacity);
    one.session = s;
  }
  if (n.kind == lock_kind::both) {
    one.both = std::make_unique<holdfast::both<holdfast::mutex, holdfast::mutex>>(
        *before.of_locks[i - 2].mutex, *before.of_locks[i - 1].mutex);
  }
  if (n.kind == lock_kind::admission) {
    one.admission = std::make_unique<holdfast::admission>(*before.of_meetings[i - 1].limiter,
                                                          *before.of_locks[i - 2].semaphore);
  }
  return one;
}

}  // namespace simulation
