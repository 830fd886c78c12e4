#include "simulation/lock_actor.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <stop_token>

#include "simulation/encounters.hpp"
#include "simulation/patience.hpp"

namespace simulation {

namespace {

using holdfast::errc;
using holdfast::lease;

constexpr std::uint32_t all_readers = 1U << 30;
/// A wait that has sent nothing after this time waits for something else first.
constexpr nanos late_sending = 100 * millisecond;

// The reason that is shown with what the process holds.
std::string reason_of(const scene& of, const process_plan& does, bool otherwise) {
  return "of P" + std::to_string(&does - of.whole.processes.data() + 1) +
         (otherwise && of.whole.seed >= term_seeds ? ", on other terms" : "");
}

/// One thread at one step with a lock.
struct lock_actor : actor {
  std::vector<locks>& all;
  locks& at;
  int id = 0;
  nanos had_at = 0;
  bool extended = false;  ///< by its user, beyond its lease
  bool extends = false;   ///< asynchronously; the extension may still be under way
  bool reads = at.shared && s.shared;
  bool asks = false;  ///< a request is under way
  bool writes = false;
  std::optional<std::uint64_t> only_readers{};  ///< the count of writers, if there was none

  /// The thread uses the name as a writer, from the call that asks for that until the end of the
  /// call that gives it up.
  void writes_now(bool so) {
    auto& [now, begun] = of.writers[name];
    if (so != std::exchange(writes, so)) now += so ? 1 : -1;
    if (so) ++begun;
  }

  void act() {
    if (at.shared && !s.shared) writes_now(true);
    act_on_it();
    if (at.shared) writes_now(false);
  }

  void act_on_it() try {
    if (s.forces && !at.counting) force();  // the threads of a counting lock share what they hold
    asked = of.here.now();
    of.log.add("asks for " + name + (s.shared ? " shared" : "") + (s.wait == 0 ? ", one try" : "") +
               (s.wait != 0 && s.wait != never
                    ? ", for " + std::to_string(s.wait / microsecond) + " us"
                    : ""));
    asks = !at.counting;
    if (at.counting) {
      act_with_counting();
    } else if (s.several) {
      act_with_several();
    } else if (s.how == step::style::standard) {
      act_in_standard_style();
    } else {
      act_with_a_lease();
    }
  } catch (const holdfast::error& e) {
    waits(false);
    of.rules.given_up(id);
    if (asks) judge_patience(e.reason()), judge_sending(), judge_outcome(e), judge_knowledge(e);
    judge_error(e.reason(), e.what());
  }

  // A store that is away may be back before the wait's time is over.
  void judge_patience(errc why) const {
    const nanos took = of.here.now() - asked;
    const bool bears_all = s.wait == never && of.whole.store < store_kind::contenders;
    if (why == errc::unavailable && bears_all && has_only_short_outages(of.whole)) {
      of.rules.violated("a wait without a limit goes on through short outages",
                        name + ": it ended after " + std::to_string(took / microsecond) + " us");
    }
    if (why == errc::unavailable) judge_outage(), judge_answers();
    const auto kind = of.whole.names[s.name].kind;
    const bool asks_itself = kind != lock_kind::mutex && kind != lock_kind::recursive;
    const bool of_one = !s.several && !s.shared && s.wait != never && s.wait != 0;
    if (why == errc::unavailable && asks_itself && of_one)
      judge_silence(of.rules, of.whole, name, asked, of.here.now());
    if (why != errc::unavailable || s.wait == never || took >= s.wait) return;
    of.rules.violated("a wait with a limit goes on while the store is away",
                      name + ": it ended after " + std::to_string(took / microsecond) + " us of " +
                          std::to_string(s.wait / microsecond));
  }

  // The store has answered the process meanwhile, so its outage has not lasted for that long.
  void judge_answers() const {
    const auto& whole = of.whole;
    const bool only_away = std::all_of(whole.faults.begin(), whole.faults.end(), [](const auto& f) {
      return f.what < fault_plan::kind::evict;
    });
    const bool judged = whole.seed >= blended_seeds && whole.others.empty() && !s.several &&
                        whole.store < store_kind::contenders && only_away;
    const auto changed = of.used_at.find({s.name, p.number});
    const bool alone = of.users[{s.name, p.number}] == 1 && changed != of.used_at.end() &&
                       changed->second <= asked;
    if (!judged || !alone || s.wait != never) return;
    constexpr nanos store_timeout = 10 * second;
    const nanos heard = of.said.answered_at(p.number, name);
    if (heard < asked || p.steady_since > heard || p.paused_until > heard) return;
    if (of.here.now() - heard >= store_timeout - whole.command_timeout - second) return;
    of.rules.violated("a wait without a limit goes on while its store answers now and then",
                      "P" + std::to_string(p.number) + ": " + name + ", answered " +
                          std::to_string((of.here.now() - heard) / millisecond) + " ms before");
  }

  // Whether the caller may believe that its call has got nothing; of several names, not all of
  // them. No other thread of the process has used the names meanwhile, no earlier call has left a
  // queue entry there, and no request has arrived after its answer was given up.
  void judge_outcome(const holdfast::error& e) const {
    const auto& whole = of.whole;
    bool got_all = whole.seed >= remaining_seeds && whole.others.empty() && !was_taken() &&
                   e.reason() == errc::unavailable && !e.outcome_unknown() && !server_clock_jumps();
    for (std::size_t i = 0; i < whole.names.size(); ++i) {
      if (whole.names[i].kind >= lock_kind::latch || (i != s.name && !s.several)) continue;
      const bool first = of.asked_in_vain.insert({i, p.number}).second;
      auto& store = *of.stores[whole.names[i].store];
      const auto changed = of.used_at.find({i, p.number});
      const bool alone = of.users[{i, p.number}] == 1 && changed != of.used_at.end() &&
                         changed->second <= asked && store.late_at(p) < asked;
      got_all =
          got_all && first && alone && store.has_granted_since(scene::name_of(i), p.number, asked);
    }
    if (!got_all) return;
    of.rules.violated("a call that may have got its lock says that its outcome is unknown",
                      "P" + std::to_string(p.number) + ": " + of.at_the_stores(name));
  }

  // The same the other way round: what is unknown is a request that got no answer, or a grant. No
  // other thread of the process has used the name meanwhile. A process that stood still at the end
  // of the wait wakes the caller and the thread that reads the answer in any order.
  void judge_knowledge(const holdfast::error& e) const {
    const auto& whole = of.whole;
    const bool judged = whole.seed >= accounting_seeds && whole.others.empty() && !s.several &&
                        whole.store < store_kind::advisory;
    const auto changed = of.used_at.find({s.name, p.number});
    const bool alone = of.users[{s.name, p.number}] == 1 && changed != of.used_at.end() &&
                       changed->second <= asked;
    if (!judged || !e.outcome_unknown() || !alone) return;
    if (!of.said.all_was_answered(p.number, name, asked)) return;
    const nanos heard = of.said.answered_at(p.number, name);
    if (s.wait != never && p.paused_until > asked + s.wait && heard >= p.paused_until) return;
    of.rules.violated("a call whose requests were all answered knows its outcome",
                      "P" + std::to_string(p.number) + ": " + e.what());
  }

  // A lock whose waiters ask for themselves: whatever other threads wait for, the request of a wait
  // with a limit is sent at once.
  void judge_sending() const {
    const auto kind = of.whole.names[s.name].kind;
    const bool asks_itself = kind == lock_kind::fair || kind == lock_kind::semaphore;
    const bool with_a_limit = s.wait != never && s.wait > late_sending && s.wait < 50 * second;
    const bool waits_itself = s.how != step::style::callback && !s.several;
    if (of.whole.seed < beside_seeds || !asks_itself || !with_a_limit || !waits_itself) return;
    if (of.whole.store >= store_kind::contenders || !no_thread_is_late()) return;
    const bool ran = p.steady_since <= asked && p.paused_until <= asked;
    if (!ran || of.here.now() - asked <= late_sending) return;
    const nanos sent = of.stores[of.whole.names[s.name].store]->asked_at(p.number, name);
    if (sent >= asked) return;
    of.rules.violated("a wait with a limit sends its request at once",
                      "P" + std::to_string(p.number) + ": " + name + ", none in " +
                          std::to_string((of.here.now() - asked) / millisecond) + " ms");
  }

  std::uint32_t capacity() const {
    if (at.shared) return all_readers;
    return at.semaphore ? at.semaphore->capacity() : 1;
  }
  std::uint32_t weight() const {
    if (at.shared) return s.shared ? 1 : all_readers;
    return s.weight;
  }

  judge::grant grant(std::uint64_t fence, std::stop_token lost) const {
    return {&p, name, weight(), capacity(), fence, asked, std::move(lost)};
  }

  // Takes the lock away from one of its holders.
  void force() {
    asked = of.here.now();
    const auto seen = at.session->show(name).holders;
    if (seen.empty()) return of.log.add("sees nobody at " + name);
    const auto& one = seen[of.here.random().below(seen.size())];
    of.log.add("takes " + name + " from " + std::to_string(one.pid) + " with fence " +
               std::to_string(one.fence));
    const auto from = static_cast<int>(one.pid) - 1000;
    const int which = of.rules.taken_away(name, from, one.fence);
    std::size_t many = 0;
    try {
      many = s.form % 2 == 1 ? value_of(async_force_release(*at.session, name, one.short_id))
                             : at.session->force_release(name, one.short_id);
    } catch (const holdfast::error&) {
      if (!of.whole.calm()) throw;  // the request may still take the lock away later
      of.rules.taken(which);
      throw;
    }
    of.rules.taken(which);
    of.log.add("has taken it from " + std::to_string(many));
    if (many > 1) {
      of.rules.violated("an operator takes a lock only from the holder that the call names", name);
    }
    // A row tells what was taken from it, even if the first answer was lost.
    const bool of_rows = of.whole.on_rows();
    // memcached does not tell it: then the call fails, and says that it does not know.
    const bool of_items =
        of.whole.store == store_kind::memcached && of.whole.seed >= ordering_seeds;
    if (many == 0 && (of_rows || of_items)) of.rules.took_nothing(which);
    if (many == 0 || one.fence == 0 || !of.whole.calm()) return;
    of.rules.has_taken(which);
    const auto& its = of.whole.processes[static_cast<std::size_t>(from) - 1];
    // The holder renews after a third of the lease, which may have been extended to twice its
    // length.
    if (its.renew) of.rules.must_be_told(name, one.fence, of.here.now() + its.lease + second / 2);
  }

  // ---- locks with a lease object

  template <class Lock, class... Weight>
  std::optional<lease> take(Lock& l, Weight... w) {
    if (s.wait == never) {
      return l.acquire(w..., stop());
    }
    if (s.wait == 0) {
      const cost one(*this, "try_acquire", 1);
      return l.try_acquire(w...);
    }
    if (s.form == 1) return l.try_acquire_until(in_time_of_the_system(), w..., stop());
    return l.try_acquire_for(duration(s.wait), w..., stop());
  }

  std::chrono::steady_clock::time_point in_time_of_the_system() const {
    return std::chrono::steady_clock::now() + duration(s.wait);
  }

  std::optional<lease> take_shared(holdfast::shared_mutex& l) {
    if (s.wait == never) return l.acquire_shared(stop());
    if (s.wait == 0) return l.try_acquire_shared();
    if (s.form == 1) return l.try_acquire_shared_until(in_time_of_the_system(), stop());
    return l.try_acquire_shared_for(duration(s.wait), stop());
  }

  std::optional<lease> take_by_callback() {
    if (at.mutex) return in_time(async_acquire(*at.mutex, limit(), stop()));
    if (at.semaphore) return in_time(async_acquire(*at.semaphore, s.weight, limit(), stop()));
    return in_time(s.shared ? async_acquire_shared(*at.shared, limit(), stop())
                            : async_acquire(*at.shared, limit(), stop()));
  }

  std::optional<lease> take() {
    if (s.how == step::style::callback) return take_by_callback();
    if (at.mutex) return take(*at.mutex);
    if (at.semaphore) return take_permits();
    return s.shared ? take_shared(*at.shared) : take(*at.shared);
  }

  std::optional<lease> take_permits() {
    auto& l = *at.semaphore;
    if (s.wait == never) return l.acquire(s.weight, stop());
    if (s.wait == 0) return l.try_acquire(s.weight);
    return l.try_acquire_for(duration(s.wait), s.weight, stop());
  }

  // True if the lease is still held.
  bool still(const lease& held) {
    const nanos then = of.here.now();
    const bool ok = held.state() == holdfast::lease_state::held ||
                    held.state() == holdfast::lease_state::suspect;
    const auto left = held.remaining();
    if (!ok || left <= std::chrono::nanoseconds(0)) {
      judge_its_time(held);
      return false;
    }
    of.rules.still_held(id, then);
    judge_doubt(held.state(), then);
    judge_what_is_left(then, left);
    judge_keeping(s.name, then + left.count());
    return true;
  }

  // When the trouble is over, requests under way fail, and the library retries them soon. A
  // transaction of another process that was cut off locks its rows for as long.
  void judge_doubt(holdfast::lease_state so, nanos then) const {
    if (so != holdfast::lease_state::suspect || !does.renew || extends || was_taken()) return;
    const nanos trouble = of.whole.on_rows() ? of.disturbed_anywhere() : of.disturbed(p);
    if (then <= trouble + 2 * of.whole.command_timeout + 3 * second) return;
    of.rules.violated("a lease is in doubt no longer than trouble lasts",
                      "P" + std::to_string(p.number) + ": " + name + ", after " +
                          std::to_string((then - trouble) / millisecond) + " ms");
  }

  // A lease whose asynchronous extension is under way may already be shorter at the store.
  void judge_keeping(std::size_t n, nanos until) const {
    // A renewal, or an extension to a shorter time, that arrives late would shorten a lease that
    // was extended meanwhile; the real stores refuse it.
    const auto& net = of.whole.network;
    const auto changed = of.another_lease.find({p.number, scene::name_of(n)});
    const bool lately = changed != of.another_lease.end() &&
                        of.here.now() < changed->second + net.slowest_late + 2 * does.lease;
    const bool late = net.delivers_late && lately && (does.renew || s.more > 0);
    if (extends || late || was_taken() || of.here.now() >= until || !of.keeps_all()) return;
    auto& store = *of.stores[of.whole.names[n].store];
    const auto kept = store.counts_until(scene::name_of(n), p.number);
    if (kept && *kept >= until) return;
    of.rules.violated(
        "the store keeps a hold for as long as its holder relies on it",
        "P" + std::to_string(p.number) + " relies on " + scene::name_of(n) + " until " +
            std::to_string(until / microsecond) + " us; " +
            (kept ? "kept until " + std::to_string(*kept / microsecond) + " us" : "not kept") +
            ": " + store.describe(scene::name_of(n)));
  }

  // The doubt may have begun while this thread was on its way from the library.
  template <class Held>
  void check_what_was_given(const Held& held) const try {
    held.check();
    const bool in_doubt = held.state() == holdfast::lease_state::suspect;
    const auto told = of.doubted_at.find(p.number);
    const bool already =
        in_doubt && told != of.doubted_at.end() && told->second + way_to_the_caller < of.here.now();
    if (no_thread_is_late() && already && p.steady_since < asked) {
      of.rules.violated("no caller gets a lease that is in doubt already", name);
    }
  } catch (const holdfast::error&) {
    judge_first_check();
    throw;
  }

  // The threads of a process hand the lock over to each other, and nothing in the plan takes it
  // away.
  bool has_local_order() const {
    const auto kind = of.whole.names[s.name].kind;
    if (kind != lock_kind::mutex && kind != lock_kind::recursive) return false;
    const auto& names = of.whole.names;
    const bool locks_only = std::all_of(names.begin(), names.end(),
                                        [](const auto& n) { return n.kind < lock_kind::latch; });
    return locks_only && of.whole.calm() && of.whole.renews();
  }

  // Whether only threads of this kind use the locks of the plan, and nothing takes them away.
  bool only_steps_of_its_kind() const {
    const auto& all_of_them = of.whole.processes;
    return std::all_of(all_of_them.begin(), all_of_them.end(), [](const auto& one) {
      return !one.unconfirmed && std::all_of(one.threads.begin(), one.threads.end(), [](auto& t) {
        return std::none_of(t.steps.begin(), t.steps.end(), [](const step& any) {
          return any.several || any.forces || any.clashes;
        });
      });
    });
  }

  // A try of a reader fails only if somebody writes, or waits to write.
  void judge_try(bool got) const {
    const auto& [now, begun] = of.writers[name];
    const auto on = of.whole.store;
    const bool judged = of.punctual() && of.whole.renews() && only_steps_of_its_kind() &&
                        of.whole.seed >= beside_seeds && of.whole.has_only_locks() &&
                        (on <= store_kind::contenders || of.whole.on_rows());
    if (got || !judged || !only_readers || now > 0 || begun != *only_readers) return;
    of.rules.violated("a try of a reader gets in where nobody writes",
                      name + "; " + of.at_the_stores(name));
  }

  void begins_to_wait() {
    waits(true);
    const auto& [now, begun] = of.writers[name];
    if (at.shared && s.shared && s.wait == 0 && now == 0) only_readers = begun;
    reads_with_others();
    if (!has_local_order()) return;
    const nanos gives_up = std::min(s.wait, s.stop_after);
    of.order.asks({world::self(), &p, name, does.max_bypass,
                   gives_up == never ? never : asked + gives_up, s.how != step::style::callback});
  }
  void has_waited(bool got, bool stoppable) {
    asks = false;
    if (got && !was_taken()) of.order.got(world::self(), of.here.now());
    judge_wait(got, stoppable);
    judge_sending();
    if (!got) of.asked_in_vain.insert({s.name, p.number});
    if (only_readers) judge_try(got);
  }

  void act_with_a_lease() {
    begins_to_wait();
    std::optional<lease> held;
    try {
      held = take();
    } catch (...) {
      judge_wait(true, true);
      throw;
    }
    has_waited(held.has_value(), true);
    if (of.whole.seed >= news_seeds) judge_outage();
    if (!held) return;
    judge_order();
    const nanos then = of.here.now();
    check_what_was_given(*held);
    id = of.rules.granted(grant(held->fence(), held->lost()), then);
    judge_joining(held->fence());
    judge_preference();
    had_at = then;
    judge_length(held->remaining());
    use(*held);
    (void)still(*held);
    judge_token(*held);
    if (s.clings > 0) cling(*held);
    of.rules.given_up(id);
    const bool lost = held->state() == holdfast::lease_state::lost;
    const auto fence = held->fence();
    give_back(std::move(*held));
    if (lost && at.mutex) judge_telling(fence);
  }

  // The lock may last a little longer at the store than its holder believes.
  void cling(const lease& held) {
    if (held.state() != holdfast::lease_state::lost) return;
    of.here.sleep(does.lease / 50);
    of.rules.given_up(id);
    of.log.add("keeps what it has lost");
    of.here.sleep(s.clings);
  }

  // Also a token that is requested only now.
  void judge_token(const lease& held) const {
    if (held.state() != holdfast::lease_state::lost || held.lost().stop_requested()) return;
    of.rules.violated("the lost() token of a lost lease has requested a stop", name);
  }

  // If an operation reports a loss, the lease reports it, too, because other threads check the
  // lease.
  void judge_loss_of(const lease& held, errc why) const {
    if (why != errc::lost || held.state() == holdfast::lease_state::lost) return;
    of.rules.violated("a lease that an operation found lost is lost", name);
  }

  // Of several leases: within a moment after the first one is lost, while the thread keeps all.
  void judge_token(const holdfast::multi_lease& held, const std::vector<int>& ids) const {
    // The check locks a mutex, at which runs from before `freezing_seeds` did not interrupt the
    // thread.
    if (of.whole.seed < freezing_seeds || held.state() != holdfast::lease_state::lost) return;
    for (const int one : ids) of.rules.given_up(one);
    const nanos then = of.here.now();
    of.here.sleep(20 * millisecond);
    const bool ran = p.steady_since <= then && p.paused_until <= then;
    if (!ran || held.lost().stop_requested()) return;
    of.rules.violated("the lost() token of several locks has requested a stop when one is lost",
                      name);
  }

  // Whoever looks at the whole sees the loss of one.
  void judge_whole(const holdfast::multi_lease& held, bool found_lost) const {
    if (of.whole.seed < blended_seeds) return;
    const bool lost = held.lost().stop_requested() || found_lost;
    if (!lost || held.state() == holdfast::lease_state::lost) return;
    of.rules.violated("several locks are lost when one of them is", name);
  }

  // The release reports the loss if nothing did before; or another thread that has found the loss
  // is about to report it.
  void judge_telling(std::uint64_t fence) const {
    const std::tuple it{p.number, name, fence};
    if (fence == 0 || s.back == step::end::destroy || of.begun_leases[it] > 1) return;
    of.here.at(
        of.here.now() + 2 * second, [&of = of, &p = p, name = name, it, now = of.here.now()] {
          if (of.told_lost[it] > 0 || of.begun_leases[it] > 1 || p.dead || p.paused_until > now)
            return;
          of.rules.violated("the library reports a loss once", name + ": it was not told");
        });
  }

  // Checks what the session reports of the lock: nobody else has it, and nothing ends it.
  template <class Held>
  void look(const Held& is_held) {
    const bool later = s.form % 2 == 1;
    const auto shows = later ? value_of(async_show(*at.session, name)) : at.session->show(name);
    const auto& seen = shows.holders;
    // The simulated memcached has no list of its keys.
    const bool lists = of.whole.store != store_kind::memcached;
    const auto listed = !lists  ? std::vector<std::string>{name}
                        : later ? value_of(async_names(*at.session, "n*"))
                                : at.session->names();
    if (at.semaphore && of.whole.seed >= freezing_seeds) look_at_what_is_left(is_held);
    if (!of.whole.calm() || was_taken() || !is_held()) return;
    const bool shown = std::any_of(seen.begin(), seen.end(), [&](const auto& h) {
      return h.pid == 1000 + static_cast<std::uint32_t>(p.number) &&
             h.reason == reason_of(of, does, s.otherwise);
    });
    if (!shown) {
      of.rules.violated(
          "each holder is shown with its reason",
          name + ": " + std::to_string(seen.size()) + " are shown; " + of.at_the_stores(name));
    }
    if (of.whole.seed >= refusing_seeds) judge_holders_shown(of.rules, shows);
    if (of.whole.seed >= form_seeds && has_leases())
      judge_what_is_shown(of.rules, of.whole, name, at.semaphore ? at.semaphore->capacity() : 0,
                          shows);
    if (std::find(listed.begin(), listed.end(), name) != listed.end()) return;
    of.rules.violated("a name that is held is listed", name);
  }

  // Checks that the permits this thread holds do not count as free.
  template <class Held>
  void look_at_what_is_left(const Held& is_held) {
    const auto left = at.semaphore->available();
    const auto all = of.whole.names[s.name].capacity;
    if (!of.whole.calm() || was_taken() || !is_held() || left + s.weight <= all) return;
    of.rules.violated("a permit that a thread holds does not count as available",
                      name + ": " + std::to_string(left) + " of " + std::to_string(all) +
                          " are said to be, beside " + std::to_string(s.weight));
  }

  // A lock object that names no lease has that of its session.
  nanos lease_of_its_object() const {
    const bool of_session = s.otherwise && of.whole.seed >= mixed_seeds && does.session_lease > 0;
    return of_session ? does.session_lease : does.lease;
  }

  // Only what its user asks for extends a lease: neither an extension of the user before nor a
  // renewal beyond max_hold does.
  void judge_what_is_left(nanos then, std::chrono::nanoseconds left) const {
    if (does.max_hold != never && then - had_at > does.max_hold) {
      ends_late(then - had_at, does.max_hold);
    }
    const bool its_own = has_leases() && !extended && !at.shared && !server_clock_jumps();
    const nanos lease = lease_of_its_object();
    if (its_own && left.count() > lease) ends_late(left.count(), lease);
  }

  // A lease that ends by a clock that was set back lasts longer, at the server as well.
  bool server_clock_jumps() const {
    using kind = fault_plan::kind;
    const auto& faults = of.whole.faults;
    return std::any_of(faults.begin(), faults.end(), [](const auto& f) {
      return f.what == kind::step || f.what == kind::clock_forward || f.what == kind::clock_back;
    });
  }

  bool has_leases() const {
    const auto on = of.whole.store;
    return on < store_kind::contenders || of.whole.on_rows();
  }

  bool punctual() const { return of.punctual() && of.whole.machine.preempt_permille == 0; }

  // A lease that nobody renews lasts as long as was requested; any other lasts until its renewal.
  void judge_length(std::chrono::nanoseconds left) const {
    if (!punctual() || !has_leases() || (at.shared && s.shared)) return;
    const nanos said = std::min(lease_of_its_object(), does.max_hold);
    const nanos claim = at.session->can().claim_us * microsecond;
    const nanos least = does.renew ? std::min(said, claim) / 3 : said * 3 / 4;
    if (left.count() < least) ends_early(left.count(), said);
  }

  // The lease ended after `lasted` although nobody took it away.
  void judge_end(nanos lasted) const {
    const bool in_time = of.whole.seed >= troubled_seeds && of.whole.renewals_come_in_time();
    if (in_time && !of.whole.calm() && has_leases() && !was_taken()) {
      of.rules.violated("a lease that is renewed in time is not lost",
                        name + ": after " + std::to_string(lasted / microsecond) + " us");
    }
    if (!punctual() || was_taken() || !does.renew || lasted >= does.max_hold / 4 * 3) return;
    ends_early(lasted, does.max_hold);
  }

  void ends_early(nanos lasts, nanos said) const {
    of.rules.violated("a grant lasts as long as the library said",
                      name + ": " + std::to_string(lasts / microsecond) + " us of " +
                          std::to_string(said / microsecond));
  }

  void ends_late(nanos lasts, nanos said) const {
    of.rules.violated("a hold lasts no longer than the library said",
                      name + ": " + std::to_string(lasts / microsecond) + " us of " +
                          std::to_string(said / microsecond));
  }

  void use(lease& held) {
    const nanos first = s.soon == 0 ? s.hold / 2 : s.soon;
    spend(held, first);
    try {
      inside(held, s.what);
    } catch (const holdfast::error& e) {
      judge_loss_of(held, e.reason());
      judge_error(e.reason(), e.what());
    }
    for (unsigned more = s.more; more > 0; --more) {
      using inside = step::inside;
      static constexpr inside any[] = {inside::extend,  inside::extend_to, inside::extend_late,
                                       inside::shorten, inside::upgrade,   inside::downgrade};
      spend(held, s.hold / 4);
      try {
        this->inside(held, any[of.here.random().below(at.shared ? 6 : 4)]);
      } catch (const holdfast::error& e) {
        judge_loss_of(held, e.reason());
        judge_error(e.reason(), e.what());
      }
    }
    if (s.looks) look_while(held);
    spend(held, s.hold - first);
  }

  void look_while(lease& held) try {
    look([&] { return still(held); });
  } catch (const holdfast::error& e) {
    judge_error(e.reason(), e.what());
  }

  // Other times are short beside a lease of that length.
  nanos looks_within() const {
    return of.whole.seed >= provoking_seeds && does.lease > 12 * second ? second : never;
  }

  void spend(const lease& held, nanos length) {
    const nanos until = of.here.now() + length;
    do {
      if (!still(held)) return judge_end(of.here.now() - had_at);
      const nanos left = std::min(until - of.here.now(), looks_within());
      if (left > 0) of.here.sleep(of.here.random().between(1, left));
    } while (of.here.now() < until);
    (void)still(held);
  }

  nanos half_of_the_seconds() const {
    if (of.whole.seed < troubled_seeds) return does.lease;
    return std::max(second, does.lease / 2 / second * second);
  }

  // Sometimes so short that it ends before the next check of the former lease.
  nanos shorter() const {
    if (of.whole.seed < freezing_seeds || of.here.random().one_in(2)) return does.lease / 2;
    return std::min(does.lease, std::max(does.lease / 6, 150 * millisecond));
  }

  void inside(lease& held, step::inside what) {
    using inside = step::inside;
    extends = extends || what == inside::extend_late || what == inside::extend_late_to;
    const bool to_more = what == inside::extend_to || what == inside::extend_late_to;
    extended = extended || to_more;
    if (to_more || what == inside::shorten) of.another_lease[{p.number, name}] = of.here.now();
    switch (what) {
      case inside::extend:
        of.log.add("extends " + name);
        return extend(held);
      case inside::extend_to:
        of.log.add("extends " + name + " to more");
        return held.extend(in_ms(in_whole_seconds() ? does.lease * 2 : does.lease * 3 / 2));
      case inside::shorten:
        of.log.add("makes the lease of " + name + " shorter");
        return shorten(held);
      case inside::extend_late:
        of.log.add("extends " + name + " without waiting");
        if (s.more > 1 && !in_whole_seconds()) {
          return async_extend(held, in_ms(does.lease / 2)).start([](const auto&) {});
        }
        return async_extend(held).start([](const auto&) {});
      case inside::extend_late_to:
        of.log.add("extends " + name + " to more without waiting");
        return async_extend(held, in_ms(does.lease * 3 / 2)).start([](const auto&) {});
      case inside::upgrade:
        if (reads) upgrade(held);
        return;
      case inside::downgrade:
        if (at.shared && !reads) downgrade(held);
        return;
      default:
        return;
    }
  }

  bool without_the_thread() const { return s.more > 0 && s.how == step::style::callback; }

  void upgrade(lease& held) {
    of.log.add("upgrades " + name);
    writes_now(true);
    const bool so = without_the_thread() ? value_of(async_upgrade(*at.shared, held))
                                         : at.shared->try_upgrade(held);
    if (!so) return writes_now(false);
    holds_otherwise(held, all_readers);
    reads = false;
    if (s.more == 0 && of.here.random().one_in(2)) downgrade(held);
  }

  void downgrade(lease& held) {
    of.log.add("downgrades " + name);
    (void)still(held);
    relies_on_less(held.fence());
    try {
      if (without_the_thread()) {
        (void)value_of(async_downgrade(*at.shared, held));
      } else {
        at.shared->downgrade(held);
      }
    } catch (const holdfast::error&) {
      holds_otherwise(held, all_readers);  // check() reports the same
      if (of.here.random().one_in(2)) throw;
      of.log.add("goes on writing");
      return;
    }
    reads = true;
    writes_now(false);
    of.log.add("downgraded");
  }

  bool in_whole_seconds() const {
    return of.whole.about == theme::slots || of.whole.about == theme::items;
  }

  void extend(lease& held) const {
    const cost one(*this, "extend", 1);
    const nanos began = of.here.now();
    const auto commands = world::self()->commands;
    nanos lost = never;
    const std::stop_callback on_loss{held.lost(), [&] { lost = of.here.now(); }};
    try {
      held.extend();
      judge_extension(began);
    } catch (const holdfast::error& e) {
      // A driver may wait for one of its connections.
      const bool only_waits = of.whole.store < store_kind::postgres && e.reason() == errc::lost &&
                              world::self()->commands == commands;
      if (only_waits) judge_waiting(began, lost);
      judge_extension(began);
      throw;
    }
  }

  // A request that was certainly not carried out has changed nothing.
  void shorten(lease& held) const {
    const nanos ends = of.here.now() + held.remaining().count();
    try {
      held.extend(in_ms(in_whole_seconds() ? half_of_the_seconds() : shorter()));
    } catch (const holdfast::error& e) {
      const nanos left = held.remaining().count();
      // The lease may have ended before the answer came, as nobody knew yet that the store keeps it
      // for longer.
      const bool for_sure = !e.outcome_unknown() && e.reason() == errc::unavailable &&
                            held.state() != holdfast::lease_state::lost;
      if (for_sure && !extends && !was_taken() && of.here.now() < ends &&
          of.here.now() + left + millisecond < ends) {
        of.rules.violated(
            "an extension that was not carried out leaves the lease as it was",
            name + ": " + std::to_string((ends - of.here.now() - left) / microsecond) + " us less");
      }
      throw;
    }
  }

  // Where at most answers are late: the call may wait for a renewal that is under way.
  void judge_extension(nanos began) const {
    const nanos late = std::min(of.whole.network.slowest_late, of.whole.command_timeout);
    const nanos took = of.here.now() - began;
    if (!of.whole.only_late_answers(never) || !has_leases() || was_taken()) return;
    // A row that others have locked for the time of their answers is waited for.
    const bool waits_for_rows = of.whole.store > store_kind::contenders;
    if (waits_for_rows && of.whole.processes.size() > 1) return;
    if (took <= 3 * late + second / 2) return;
    of.rules.violated("an extension ends soon beside a store that answers",
                      "P" + std::to_string(p.number) + ": " + name + " took " +
                          std::to_string(took / millisecond) + " ms");
  }

  // The call sent no command: it waited for a renewal, which is pointless when the lease is over.
  void judge_waiting(nanos began, nanos lost) const {
    if (p.steady_since > began || p.paused_until > began || lost == never) return;
    const nanos late = of.here.now() - lost;
    if (late <= 200 * millisecond) return;
    of.rules.violated("an extension ends when its lease does",
                      "P" + std::to_string(p.number) + ": " + name + ", " +
                          std::to_string(late / microsecond) + " us after the loss");
  }

  // From the call on: others may acquire before it returns.
  void relies_on_less(std::uint64_t fence) { of.rules.relies_on_less(id, 1, fence); }

  void holds_otherwise(const lease& held, std::uint32_t weight) {
    const nanos then = of.here.now();
    if (held.remaining() <= std::chrono::nanoseconds(0)) return;
    of.rules.changed(id, weight, held.fence(), then);
  }

  void give_back(lease held) {
    of.log.add("gives back " + name);
    if (s.back == step::end::destroy) return;
    std::error_code e;
    const nanos then = of.here.now();
    const nanos left = held.remaining().count();
    const auto fence = held.fence();
    const bool taken = of.rules.was_certainly_taken(id);
    if (s.how == step::style::callback) {
      auto how = async_release(std::move(held)).future().get();
      if (!how) e = make_error_code(how.error().code);
    } else {
      const cost one(*this, "release", 1);
      e = held.release();
    }
    of.log.add("gave back " + name);
    if (e == errc::lost && of.here.now() - then < left) judge_loss();
    if (!e) judge_success(then);
    if (!e && taken) judge_taken(fence);
    if (!e && fence != 0 && does.linger == 0 && !does.unconfirmed)
      of.given_back.emplace(p.number, name, fence);
    if (e == errc::unavailable && of.whole.answers_come_in_time()) {
      of.rules.violated("a release whose answer comes in time is not in doubt", name);
    }
    if (e) judge_error(static_cast<errc>(e.value()), "release: " + e.message());
  }

  // A lock that the store had forgotten before was not released by any attempt of this release.
  void judge_success(nanos began) const {
    const auto& n = of.whole.names[s.name];
    const bool passed_on = (n.kind == lock_kind::mutex || n.kind == lock_kind::recursive) &&
                           (does.linger > 0 || does.local_time > 0);
    if (passed_on || does.unconfirmed || of.whole.store != store_kind::memcached) return;
    const nanos forgot = of.stores[n.store]->forgot_all_at();
    // The client cannot tell a server in a container that is back within a second or two from the
    // one before.
    if (had_at + 3 * second > forgot || began < forgot) return;
    of.rules.violated(
        "a holder that gives back a lock that the store has forgotten gets a report of the loss",
        name);
  }

  // Threads that pass the lock on to each other do not ask the store.
  void judge_taken(std::uint64_t fence) const {
    const auto& n = of.whole.names[s.name];
    const bool in_turn = n.kind == lock_kind::mutex || n.kind == lock_kind::recursive;
    const bool asks_store = !in_turn || (does.local_time == 0 && does.linger == 0);
    if (!asks_store || does.unconfirmed || at.shared || s.back == step::end::destroy) return;
    if (of.told_lost[{p.number, name, fence}] > 0) return;
    of.rules.violated(
        "a holder that gives back a lock that was taken from it gets a report of the loss",
        "P" + std::to_string(p.number) + ": " + name);
  }

  // Where the store keeps its data, the first attempt of a repeated release was carried out.
  void judge_loss() const {
    const bool keeps = of.whole.faults.empty() || of.whole.only_deaths();
    const bool counts_down = of.whole.seed >= form_seeds && of.whole.store == store_kind::memcached;
    const bool judged = has_leases() || counts_down;
    if (!judged || !keeps || was_taken() || at.shared || extends) return;
    of.rules.violated("a holder that gives its lock back in time gets no report of a loss", name);
  }

  // ---- several names together

  bool reads_all() const { return s.form % 3 == 1; }

  holdfast::multi_member member(locks& l) const {
    if (l.mutex) return *l.mutex;
    if (l.shared) return reads_all() ? shared(*l.shared) : holdfast::multi_member(*l.shared);
    return permits_of(l) == 1 ? holdfast::multi_member(*l.semaphore)
                              : permits(*l.semaphore, permits_of(l));
  }
  std::uint32_t permits_of(const locks& l) const {
    return of.whole.seed < term_seeds ? 1 : std::min(s.weight, l.semaphore->capacity());
  }

  void extend(holdfast::multi_lease& held) {
    of.log.add("extends all");
    if (s.form > 3) {
      (void)value_of(s.form == 4
                         ? async_extend(held)
                         : async_extend(held, in_ms(in_whole_seconds() ? does.lease * 2
                                                                       : does.lease * 3 / 2)));
      return;
    }
    if (of.here.random().one_in(2)) return held.extend();
    held.extend(in_ms(in_whole_seconds() ? does.lease * 2 : does.lease * 3 / 2));
  }

  std::optional<holdfast::multi_lease> take(holdfast::multi_lock& together) {
    if (s.takes_several_without_a_thread()) {
      return in_time(async_acquire(together, limit(), stop()));
    }
    if (s.wait == never) return together.acquire(stop());
    if (s.wait == 0) return together.try_acquire();
    return together.try_acquire_for(duration(s.wait), std::nullopt, stop());
  }

  // Half of the processes name them from the last one to the first.
  std::vector<std::size_t> those_together() const {
    std::vector<std::size_t> which;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (of.whole.names[i].kind < lock_kind::latch) which.push_back(i);
    }
    if (of.whole.seed >= ordering_seeds && p.number % 2 == 0)
      std::reverse(which.begin(), which.end());
    return which;
  }

  // A wait for several names begins anew, as another owner, when one that it has is taken from it.
  void judge_beginnings(int owners, int takes) const {
    const auto& whole = of.whole;
    const auto asks = std::count_if(does.threads.begin(), does.threads.end(), [](const auto& t) {
      return std::any_of(t.steps.begin(), t.steps.end(),
                         [](const auto& one) { return one.several; });
    });
    const bool judged = whole.seed >= blended_seeds && of.punctual() && asks == 1 &&
                        whole.renews() && does.lease >= 2 * second && whole.others.empty() &&
                        does.session_lease == 0 && whole.store < store_kind::contenders;
    const int begun = of.said.owners_of_several(p.number) - owners;
    const int most = 2 + of.rules.takes() - takes;
    if (!judged || begun <= most) return;
    of.rules.violated(
        "a wait for several names begins anew only when one was lost",
        name + ": " + std::to_string(begun) + " times instead of " + std::to_string(most));
  }

  void act_with_several() {
    const auto which = those_together();
    std::vector<holdfast::multi_member> members;
    for (const auto i : which) members.push_back(member(all[i]));
    holdfast::multi_lock together(members);
    of.together.writes(&p, of.here.now());
    ++of.at_several;
    const int owners = of.said.owners_of_several(p.number), takes = of.rules.takes();
    const bool for_good = s.wait == never && s.stop_after == never;
    if (for_good) of.want_all.push_back(&p);
    const auto waits_no_more = [&] {
      --of.at_several;
      const auto mine = std::find(of.want_all.begin(), of.want_all.end(), &p);
      if (for_good) of.want_all.erase(mine);
    };
    std::optional<holdfast::multi_lease> held;
    try {
      held = take(together);
    } catch (...) {
      waits_no_more();
      throw;
    }
    waits_no_more();
    asks = false;
    judge_beginnings(owners, takes);
    judge_wait(held.has_value(), true);
    if (!held) {
      for (const auto i : which) of.asked_in_vain.insert({i, p.number});
      return;
    }
    const nanos then = of.here.now();
    check_what_was_given(*held);
    const auto fences = held->fences();
    std::vector<int> ids;
    const auto give_up = [&] {
      for (const int one : ids) of.rules.given_up(one);
    };
    for (std::size_t m = 0; m < which.size(); ++m) {
      const auto i = which[m];
      const bool permits = all[i].semaphore != nullptr;
      const std::uint32_t most = all[i].shared ? all_readers
                                 : permits     ? all[i].semaphore->capacity()
                                               : 1;
      const std::uint32_t mine = permits                        ? permits_of(all[i])
                                 : all[i].shared && reads_all() ? 1
                                                                : most;
      ids.push_back(
          of.rules.granted({&p, of.name_of(i), mine, most, fences[m], asked, held->lost()}, then));
    }
    try {
      for (int i = 0; i < 4; ++i) {
        const nanos now = of.here.now();
        held->check();
        for (const int one : ids) of.rules.still_held(one, now);
        const bool in_full = of.whole.seed >= accounting_seeds && s.more == 0;
        const nanos left = in_full ? std::max<nanos>(held->remaining().count(), 1) : 1;
        for (const auto i : which) judge_keeping(i, now + left);
        if (s.more > static_cast<unsigned>(i)) extend(*held);
        of.here.sleep(s.hold / 4);
      }
    } catch (const holdfast::error& e) {
      judge_whole(*held, e.reason() == errc::lost);
      judge_error(e.reason(), e.what());
    }
    judge_whole(*held, false);
    judge_token(*held, ids);
    give_up();
    of.log.add("gives back all");
    if (s.back == step::end::destroy) return;
    const auto e = release(std::move(*held));
    if (e) judge_error(static_cast<errc>(e.value()), "release: " + e.message());
  }
  std::error_code release(holdfast::multi_lease held) const {
    if (s.form % 2 == 0) return held.release();
    const auto how = async_release(std::move(held)).future().get();
    return how ? std::error_code{} : make_error_code(how.error().code);
  }

  // ---- the forms of the standard

  template <class Lock>
  bool lock(Lock& l) {
    if (s.wait == never && s.stop_after == never) {
      l.lock();
      return true;
    }
    if (s.wait == never) return l.lock(stop());
    if (s.wait == 0) return l.try_lock();
    if (s.form == 1) return l.try_lock_until(in_time_of_the_system());
    return l.try_lock_for(duration(s.wait));
  }
  bool lock_shared(holdfast::shared_mutex& l) {
    if (s.wait == never && s.stop_after == never) {
      l.lock_shared();
      return true;
    }
    if (s.wait == never) return l.lock_shared(stop());
    if (s.wait == 0) return l.try_lock_shared();
    return l.try_lock_shared_for(duration(s.wait));
  }

  void act_in_standard_style() {
    if (at.mutex) return act_in_standard_style(*at.mutex);
    if (at.recursive) return act_in_standard_style(*at.recursive);
    return act_in_standard_style(*at.shared);
  }

  // A counting lock does not notify its holders of a loss, so how long it is held is known only
  // where nothing goes wrong.
  void act_with_counting() {
    auto& l = *at.counting;
    waits(true);
    bool got = true;
    try {
      if (s.wait == never) l.acquire();
      if (s.wait == 0) got = l.try_acquire();
      if (s.wait != never && s.wait != 0) got = l.try_acquire_for(duration(s.wait));
    } catch (...) {
      judge_wait(true, false);
      throw;
    }
    judge_wait(got, false);
    if (!got) return;
    const bool certain = of.whole.calm() && !of.loses;
    if (certain) id = of.rules.granted({&p, name, 1, l.max(), 0, asked, {}}, of.here.now());
    const auto has = of.unjudged.emplace(name, &p);
    if (s.looks && certain) look([&] { return does.renew; });
    of.here.sleep(s.hold);
    of.unjudged.erase(has);
    if (certain) of.rules.still_held(id, of.here.now());
    of.rules.given_up(id);
    of.log.add("gives back " + name);
    l.release();
  }

  template <class Lock>
  bool take_in_standard_style(Lock& l) {
    if constexpr (std::is_same_v<Lock, holdfast::shared_mutex>) {
      if (s.shared) return lock_shared(l);
    }
    return lock(l);
  }

  template <class Lock>
  void unlock(Lock& l) {
    of.log.add("unlocks " + name);
    if constexpr (std::is_same_v<Lock, holdfast::shared_mutex>) {
      if (l_shared) return l.unlock_shared();
    }
    l.unlock();
  }

  bool l_shared = false;

  template <class Lock>
  void act_in_standard_style(Lock& l) {
    begins_to_wait();
    bool got = false;
    l_shared = s.shared;
    try {
      got = take_in_standard_style(l);
    } catch (...) {
      judge_wait(true, false);
      throw;
    }
    has_waited(got, s.wait == never);
    if (!got) return;
    judge_order();
    try {
      const nanos then = had_at = of.here.now();
      l.check();
      id = of.rules.granted(grant(l.fence(), l.lost()), then);
      judge_joining(l.fence());
      judge_preference();
      hold_for(l, s.hold / 2);
      inside(l);
      for (unsigned more = s.more; more > 0; --more) {
        hold_for(l, s.hold / 4);
        once_more(l);
      }
      hold_for(l, s.hold - s.hold / 2);
    } catch (const holdfast::error& e) {
      const bool judged = of.whole.seed >= mixed_seeds && e.reason() == errc::lost;
      if (judged && had_at > 0) judge_end(of.here.now() - had_at);
      judge_error(e.reason(), e.what());
    }
    of.rules.given_up(id);
    unlock(l);
  }

  template <class Lock>
  void inside(Lock& l) {
    if constexpr (std::is_same_v<Lock, holdfast::recursive_mutex>) {
      if (s.what == step::inside::again) lock_again(l);
    } else if constexpr (std::is_same_v<Lock, holdfast::shared_mutex>) {
      if (s.what == step::inside::upgrade && s.shared) upgrade(l);
      if (s.what == step::inside::downgrade && !s.shared) downgrade(l);
    }
  }

  template <class Lock>
  void once_more(Lock& l) {
    if constexpr (std::is_same_v<Lock, holdfast::recursive_mutex>) {
      lock_again(l);
    } else if constexpr (std::is_same_v<Lock, holdfast::shared_mutex>) {
      l_shared ? upgrade(l) : downgrade(l);
    }
  }

  void lock_again(holdfast::recursive_mutex& l) {
    const auto level = l.level();
    const std::unique_lock again{l, std::try_to_lock};
    if (!again) {
      of.rules.violated("a recursive_mutex can be locked again", name);
    } else {
      if (s.form > 0) hold_for(l, s.hold / 4);
      if (l.level() != level + 1) of.rules.violated("a recursive_mutex counts its levels", name);
    }
  }

  void upgrade(holdfast::shared_mutex& l) {
    of.log.add("upgrades " + name);
    writes_now(true);
    if (!l.try_upgrade()) return writes_now(false);
    l_shared = false;
    const nanos then = of.here.now();
    l.check();
    of.rules.changed(id, all_readers, l.fence(), then);
  }

  void downgrade(holdfast::shared_mutex& l) {
    of.log.add("downgrades " + name);
    relies_on_less(l.fence());
    try {
      l.downgrade();
    } catch (const holdfast::error&) {
      const nanos then = of.here.now();
      l.check();
      of.rules.changed(id, all_readers, l.fence(), then);
      throw;
    }
    writes_now(false);
    l_shared = true;
  }

  template <class Lock>
  void hold_for(Lock& l, nanos length) {
    const nanos until = of.here.now() + length;
    do {
      check(l);
      const nanos left = std::min(until - of.here.now(), looks_within());
      if (left > 0) of.here.sleep(of.here.random().between(1, left));
    } while (of.here.now() < until);
    check(l);
  }

  template <class Lock>
  void check(Lock& l) {
    const nanos then = of.here.now();
    l.check();
    of.rules.still_held(id, then);
    judge_keeping(s.name, then + 1);
  }
};

}  // namespace

locks make_locks(const scene& of, const holdfast::session& s, std::size_t i,
                 const process_plan& does, bool otherwise) {
  holdfast::lock_options o;
  const bool as_session = otherwise && of.whole.seed >= mixed_seeds;
  if (does.session_lease > 0 && !as_session) o.lease = in_ms(does.lease);
  o.renew = does.renew;
  if (does.max_hold != never) o.max_hold = in_ms(does.max_hold);
  o.unconfirmed_release = does.unconfirmed;
  if (of.whole.seed >= latest_seeds) o.reason = reason_of(of, does, otherwise);
  const auto& n = of.whole.names[i];
  if (n.kind == lock_kind::mutex || n.kind == lock_kind::recursive) {
    o.local_time = std::chrono::microseconds(does.local_time / microsecond);
    if (otherwise) o.local_time += std::chrono::milliseconds(1);
    o.max_bypass = does.max_bypass;
    if (does.max_waiters > 0) o.max_waiters = does.max_waiters;
    if (does.max_hold == never || of.whole.seed >= mixed_seeds)
      o.linger = std::chrono::microseconds(does.linger / microsecond);
  }
  locks all;
  all.session = &s;
  switch (n.kind) {
    case lock_kind::mutex:
      all.mutex = std::make_unique<holdfast::mutex>(s, scene::name_of(i), o);
      break;
    case lock_kind::fair:
      all.mutex = std::make_unique<holdfast::fair_mutex>(s, scene::name_of(i), o);
      break;
    case lock_kind::recursive:
      all.recursive = std::make_unique<holdfast::recursive_mutex>(s, scene::name_of(i), o);
      break;
    case lock_kind::shared: {
      holdfast::shared_mutex_options so;
      static_cast<holdfast::lock_options&>(so) = o;
      static constexpr holdfast::preference all_of_them[] = {
          holdfast::preference::fifo, holdfast::preference::reader, holdfast::preference::writer};
      so.preference = all_of_them[n.prefers];
      all.shared = std::make_unique<holdfast::shared_mutex>(s, scene::name_of(i), so);
      break;
    }
    case lock_kind::semaphore:
      all.semaphore = std::make_unique<holdfast::semaphore>(s, scene::name_of(i), n.capacity, o);
      break;
    case lock_kind::counting:
      all.counting = std::make_unique<holdfast::counting_semaphore>(
          s, scene::name_of(i), n.capacity + does.more_permits, o);
      break;
    default:
      break;
  }
  return all;
}

namespace {

/// The object of another kind that a step uses, for as long as it lasts.
struct another_kind : actor {
  int id = 0;

  template <class Check>
  void keep(Check still) {
    // At a redlock's node it holds nothing of the redlock.
    const bool judged = of.whole.names[s.name].kind < lock_kind::latch;
    judge::grant g{&p, name, all_readers, all_readers, 0, asked, {}};
    g.of_another_kind = true;
    const nanos then = of.here.now();
    if (judged && still()) id = of.rules.granted(std::move(g), then);
    of.here.sleep(s.hold);
    const nanos later = of.here.now();
    if (still()) of.rules.still_held(id, later);
    of.rules.given_up(id);
    of.log.add("gives back " + name + " as another kind");
  }

  // It was refused as if it only had to wait: nobody has held the name as its own kind all the
  // time.
  void judge_refusal() const {
    if (of.whole.seed < accounting_seeds || !of.whole.calm() || was_taken()) return;
    if (of.whole.names[s.name].kind >= lock_kind::latch) return;
    const nanos then = of.here.now();
    of.here.at(then + second, [&of = of, name = name, asked = asked, then] {
      if (!of.rules.was_held(name, asked, then)) return;
      of.rules.violated("a name that is in use as another kind is a mismatch", name);
    });
  }

  // In half of the plans that of a mutex, which has one slot as well.
  std::uint32_t size() const {
    return of.whole.seed >= accounting_seeds && of.whole.seed % 2 == 0 ? 1 : 2;
  }

  void hold(std::optional<lease> held) {
    if (!held) return judge_refusal();
    keep([&] {
      return held->state() != holdfast::lease_state::lost && held->remaining().count() > 0;
    });
    const auto e = held->release();
    if (e) judge_error(static_cast<errc>(e.value()), "release: " + e.message());
  }

  // On slots a permit has a place of its own, and how long it is held is known only where nothing
  // goes wrong.
  void hold_a_slot(const holdfast::session& session) {
    holdfast::counting_semaphore l(session, name, size());
    if (!l.try_acquire()) return judge_refusal();
    keep([&] { return of.whole.calm(); });
    l.release();
  }

  void act(const locks& at) try {
    of.log.add("asks for " + name + " as another kind");
    const auto kind = of.whole.names[s.name].kind;
    const bool slots = of.whole.about == theme::slots || of.whole.about == theme::items;
    if (slots) return hold_a_slot(*at.session);
    if (kind == lock_kind::semaphore) return hold(holdfast::mutex(*at.session, name).try_acquire());
    hold(holdfast::semaphore(*at.session, name, size()).try_acquire(size()));
  } catch (const holdfast::error& e) {
    of.rules.given_up(id);
    judge_error(e.reason(), e.what());
  }
};

}  // namespace

void act_as_another_kind(const actor& who, const locks& at) { another_kind{{who}}.act(at); }

void act_on_locks(const actor& who, std::vector<locks>& all) {
  if (who.s.clashes) return act_as_another_kind(who, all[who.s.name]);
  lock_actor a{{who}, all, all[who.s.name]};
  a.act();
}

}  // namespace simulation
