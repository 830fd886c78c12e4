#include "simulation/run.hpp"

#include <algorithm>
#include <holdfast/holdfast.hpp>
#include <map>
#include <memory>
#include <thread>

#include "simulation/server.hpp"

namespace simulation {

namespace {

using holdfast::errc;
using holdfast::lease;

// What the library takes at most, and its threads until they run.
constexpr nanos deadline_slack = 105 * millisecond;

auto duration(nanos t) { return std::chrono::nanoseconds(t); }
auto in_ms(nanos t) { return std::chrono::milliseconds(t / millisecond); }

/// The locks of one process, one object a name.
struct locks {
  std::unique_ptr<holdfast::mutex> mutex;
  std::unique_ptr<holdfast::recursive_mutex> recursive;
  std::unique_ptr<holdfast::shared_mutex> shared;
  std::unique_ptr<holdfast::semaphore> semaphore;
};

class scene {
 public:
  scene(const plan& p, bool traced)
      : plan_(p),
        world_(p.seed, p.machine),
        trace_(world_, traced),
        judge_(world_, trace_, p.store == store_kind::contenders ? "among contenders: " : ""),
        server_(world_, trace_, "simulated:", traits(p), p.network) {}

  outcome play() {
    if (trace_.on()) world_.keep_stacks();
    for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
      process& p = world_.add_process();
      processes_.push_back(&p);
      world_.at(plan_.processes[i].begins, [this, &p, i] {
        if (p.dead) return;
        world_.start(p, "main", [this, &p, i] { live(p, plan_.processes[i]); });
      });
    }
    for (const auto& f : plan_.faults) {
      world_.at(f.at, [this, &f] { strike(f); });
    }
    const nanos quiet = end_of_faults();
    world_.at(quiet, [this] { server_.end_of_faults(); });
    watch();
    const bool all_over = world_.run(longest());
    if (!judge_.found() && !all_over) judge_.violated("every call returns", blocked());
    if (!judge_.found()) look_at_what_is_left(quiet);
    outcome o;
    o.found = judge_.found();
    o.commands = server_.commands();
    o.grants = judge_.grants();
    o.switches = world_.switches();
    o.simulated = world_.now();
    o.trace = trace_.text(400);
    return o;
  }

 private:
  static server_traits traits(const plan& p) {
    server_traits t;
    t.notices = p.store != store_kind::untold;
    t.sees_death = p.store == store_kind::sees_death;
    t.contenders = p.store == store_kind::contenders;
    t.drift_per_mille = p.drift_per_mille;
    t.wall_only_grows = p.wall_only_grows;
    return t;
  }

  nanos end_of_faults() const {
    nanos last = 9 * plan_.longest_lease();
    for (const auto& f : plan_.faults) last = std::max(last, f.at + f.length);
    return last + second;
  }

  nanos longest() const {
    nanos all = end_of_faults() + 300 * second;
    for (const auto& p : plan_.processes) {
      for (const auto& t : p.threads) {
        for (const auto& s : t.steps) all += s.think + s.hold + (s.wait == never ? 0 : s.wait);
      }
    }
    return all;
  }

  // ---- faults

  void strike(const fault_plan& f) {
    process& p = *processes_[f.process];
    const nanos until = world_.now() + f.length;
    using kind = fault_plan::kind;
    disturbed_at_ = std::max(disturbed_at_, until);
    switch (f.what) {
      case kind::pause:
        trace_.add("world", "P" + std::to_string(p.number) + " stands still for " +
                                std::to_string(f.length / millisecond) + " ms");
        return world_.pause(p, until);
      case kind::kill:
        trace_.add("world", "P" + std::to_string(p.number) + " is killed");
        world_.kill(p);
        judge_.died(p);
        std::erase_if(waiting_, [&](const auto& w) { return w.second == &p; });
        return server_.process_died(p);
      case kind::cut:
        return server_.cut(p, until);
      case kind::restart:
        return server_.stop(until, false);
      case kind::forget:
        // Until then somebody may rely on what was granted before, handed on in a process.
        judge_.forgot(until + 2 * plan_.longest_lease());
        return server_.stop(until, true);
      case kind::freeze:
        return server_.freeze(until);
    }
  }

  nanos disturbed(const process& p) const {
    return std::max({disturbed_at_, server_.disturbed_at(p), p.steady_since, p.paused_until});
  }
  /// Nothing went wrong for so long that an error can only be untrue.
  bool undisturbed(const process& p, nanos since) const {
    const nanos last = disturbed(p);
    return plan_.calm() || last < since - 3 * plan_.longest_lease() - 5 * second;
  }

  // ---- nobody waits in vain

  void watch() {
    world_.at(world_.now() + 50 * millisecond, [this] {
      bool any = false;
      for (std::size_t i = 0; i < plan_.names.size(); ++i) {
        const std::string name = name_of(i);
        nanos last = disturbed_at_;
        bool wanted = false;
        for (const auto& [n, p] : waiting_) wanted |= n == name;
        any |= wanted;
        // A multi_lock keeps what it has while it waits for the rest.
        bool kept = false;
        for (std::size_t k = 0; several_ > 0 && k < plan_.names.size(); ++k) {
          kept |= judge_.anybody_has(name_of(k));
        }
        if (!wanted || kept || judge_.anybody_has(name)) {
          idle_since_[name] = world_.now();
          continue;
        }
        for (const auto* const p : processes_) {
          if (!p->dead) last = std::max(last, disturbed(*p));
        }
        const nanos bound = plan_.calm()
                                ? (plan_.store == store_kind::untold ? 5 * second : 2 * second)
                                : 2 * plan_.longest_lease() + 10 * second;
        if (world_.now() - std::max(idle_since_[name], last) > bound) {
          judge_.violated("nobody waits for what nobody has",
                          "for " + std::to_string(bound / millisecond) +
                              " ms; at the store: " + server_.describe(name) + "\n" + blocked());
        }
      }
      const bool alive = std::any_of(processes_.begin(), processes_.end(),
                                     [](const auto* p) { return p->running > 0; });
      if (!over_ && (alive || any || world_.now() < second)) watch();
    });
  }

  std::string blocked() const {
    std::string all;
    for (const auto* const f : world_.not_over()) {
      all += "P" + std::to_string(f->of->number) + "." + (f->name.empty() ? "bg" : f->name);
      const auto where = world::stack_of(*f);
      all += where.empty() ? " " : " in " + where + "\n";
    }
    return "still there: " + all;
  }

  void look_at_what_is_left(nanos quiet) {
    over_ = true;
    const bool at_once = plan_.calm();
    if (!at_once) {
      const nanos end = std::max(world_.now(), quiet) + 2 * plan_.longest_lease() + 8 * second;
      world_.at(end, [] {});
      (void)world_.run(end);
    }
    // What runs out is forgotten when somebody asks.
    for (const auto& name : server_.names()) {
      judge_.violated("nothing is left at the store", server_.describe(name));
    }
  }

  // ---- what processes do

  class listener final : public holdfast::observer {
   public:
    listener(scene& of, process& p) : of_(of), process_(p) {}
    void on_event(const holdfast::event& e) override {
      using kind = holdfast::event_kind;
      const bool good =
          e.kind == kind::acquired || e.kind == kind::released || e.kind == kind::gave_up;
      if (of_.trace_.on() && !good) {
        of_.trace_.add("(" + std::string(to_string(e.kind)) + " " + std::string(e.name) + " " +
                       std::string(e.detail) + ")");
      }
      const bool due = e.kind == kind::lost && of_.loses_;
      if (!good && !due && of_.plan_.calm()) {
        of_.judge_.violated("where nothing goes wrong nobody is told that it did",
                            std::string(to_string(e.kind)) + " " + std::string(e.name) + ": " +
                                std::string(e.detail));
      }
    }

   private:
    scene& of_;
    process& process_;
  };

  std::string name_of(std::size_t i) const { return "n" + std::to_string(i); }

  void live(process& p, const process_plan& does) {
    if (!does.renew || does.max_hold != never) loses_ = true;
    holdfast::session_options o;
    o.lease = in_ms(does.lease);
    o.observer = std::make_shared<listener>(*this, p);
    holdfast::session s(server_.connect(p), o);
    std::vector<locks> all;
    for (std::size_t i = 0; i < plan_.names.size(); ++i) all.push_back(make_locks(s, i, does));
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < does.threads.size(); ++t) {
      threads.emplace_back([this, &p, &all, &does, t] {
        world::self()->name = "t" + std::to_string(t + 1);
        for (const auto& one : does.threads[t].steps) {
          world_.sleep(one.think);
          actor a{*this, p, does, all, all[one.name], one, name_of(one.name)};
          a.act();
        }
      });
    }
    for (auto& t : threads) t.join();
    all.clear();
    trace_.add("closes its session");
  }

  locks make_locks(const holdfast::session& s, std::size_t i, const process_plan& does) {
    holdfast::lock_options o;
    o.renew = does.renew;
    if (does.max_hold != never) o.max_hold = in_ms(does.max_hold);
    o.local_time = std::chrono::microseconds(does.local_time / microsecond);
    o.max_bypass = does.max_bypass;
    o.unconfirmed_release = does.unconfirmed;
    const auto& n = plan_.names[i];
    if (n.kind == lock_kind::mutex || n.kind == lock_kind::recursive) {
      if (does.max_hold == never) o.linger = std::chrono::microseconds(does.linger / microsecond);
    }
    locks all;
    switch (n.kind) {
      case lock_kind::mutex:
        all.mutex = std::make_unique<holdfast::mutex>(s, name_of(i), o);
        break;
      case lock_kind::fair:
        all.mutex = std::make_unique<holdfast::fair_mutex>(s, name_of(i), o);
        break;
      case lock_kind::recursive:
        all.recursive = std::make_unique<holdfast::recursive_mutex>(s, name_of(i), o);
        break;
      case lock_kind::shared: {
        holdfast::shared_mutex_options so;
        static_cast<holdfast::lock_options&>(so) = o;
        all.shared = std::make_unique<holdfast::shared_mutex>(s, name_of(i), so);
        break;
      }
      case lock_kind::semaphore:
        all.semaphore = std::make_unique<holdfast::semaphore>(s, name_of(i), n.capacity, o);
        break;
    }
    return all;
  }

  static constexpr std::uint32_t all_readers = 1U << 30;

  /// One thread at one step.
  struct actor {
    scene& of;
    process& p;
    const process_plan& does;
    std::vector<locks>& all;
    locks& at;
    const step& s;
    std::string name;
    nanos asked = 0;
    int id = 0;

    void act() try {
      asked = of.world_.now();
      of.trace_.add(
          "asks for " + name + (s.shared ? " shared" : "") + (s.wait == 0 ? ", one try" : "") +
          (s.wait != 0 && s.wait != never ? ", for " + std::to_string(s.wait / microsecond) + " us"
                                          : ""));
      if (s.several) {
        act_with_several();
      } else if (s.how == step::style::standard) {
        act_in_standard_style();
      } else {
        act_with_a_lease();
      }
    } catch (const holdfast::error& e) {
      waits(false);
      of.judge_.given_up(id);
      judge_error(e.reason(), e.what());
    }

    void judge_error(errc code, const std::string& what) {
      of.trace_.add("gets " + what);
      const bool due_to_trouble = code == errc::unavailable || code == errc::lost;
      const bool due_to_plan = code == errc::cancelled ? s.stop_after != never
                               : code == errc::lost    ? of.loses_
                                                       : false;
      if (due_to_plan) return;
      if (due_to_trouble && !of.undisturbed(p, asked)) return;
      of.judge_.violated("each error is true", "P" + std::to_string(p.number) + ": " + what);
    }

    std::stop_token stop() {
      if (s.stop_after == never) return {};
      std::stop_source source;
      of.world_.start(p, "stopper", [w = &of.world_, source, after = s.stop_after]() mutable {
        w->sleep(after);
        source.request_stop();
      });
      return source.get_token();
    }

    void waits(bool so) {
      auto& waiting = of.waiting_;
      if (so && s.wait == never && s.stop_after == never) waiting.emplace(name, &p);
      if (so) return;
      for (auto i = waiting.begin(); i != waiting.end(); ++i) {
        if (i->first != name || i->second != &p) continue;
        waiting.erase(i);
        return;
      }
    }

    // After a wait with a limit.
    void judge_wait(bool got, bool stoppable) {
      waits(false);
      const nanos took = of.world_.now() - asked;
      if (!got) of.trace_.add("does not get " + name);
      if (s.wait == never) return;
      if (!got && took < s.wait && !(stoppable && s.stop_after != never)) {
        of.judge_.violated("a wait does not end before its time",
                           name + " after " + std::to_string(took / microsecond) + " us");
      }
      if (p.steady_since > asked || p.paused_until > asked) return;
      const nanos asks = of.plan_.store == store_kind::contenders ? 2 : 1;
      const nanos one_try = of.plan_.calm() ? 0 : asks * server_traits{}.command_timeout;
      const nanos most = (s.wait == 0 ? one_try : s.wait) + deadline_slack;
      if (took > most) {
        of.judge_.violated("a wait ends in time",
                           "P" + std::to_string(p.number) + ": " + name + " took " +
                               std::to_string(took / microsecond) + " us instead of " +
                               std::to_string(s.wait / microsecond));
      }
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

    // ---- with a handle

    template <class Lock, class... Weight>
    std::optional<lease> take(Lock& l, Weight... w) {
      if (s.wait == never) {
        return l.acquire(w..., stop());
      }
      if (s.wait == 0) return l.try_acquire(w...);
      return l.try_acquire_for(duration(s.wait), w..., stop());
    }

    std::optional<lease> take_shared(holdfast::shared_mutex& l) {
      if (s.wait == never) return l.acquire_shared(stop());
      if (s.wait == 0) return l.try_acquire_shared();
      return l.try_acquire_shared_for(duration(s.wait), stop());
    }

    std::optional<lease> take_by_callback() {
      holdfast::wait_limit limit;
      if (s.wait != never) limit = holdfast::wait_limit(duration(s.wait));
      auto begun = at.mutex    ? async_acquire(*at.mutex, limit, stop())
                   : at.shared ? s.shared ? async_acquire_shared(*at.shared, limit, stop())
                                          : async_acquire(*at.shared, limit, stop())
                               : async_acquire(*at.semaphore, s.weight, limit, stop());
      auto got = std::move(begun).future().get();
      if (got) return std::move(*got);
      const errc code = got.error().code;
      if (code == errc::timed_out && s.wait != never) return std::nullopt;
      if (code == errc::busy && s.wait == 0) return std::nullopt;
      throw holdfast::error(got.error());
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

    // True if it is still held.
    bool still(const lease& held) {
      const nanos then = of.world_.now();
      const bool ok = held.state() == holdfast::lease_state::held ||
                      held.state() == holdfast::lease_state::suspect;
      if (ok && held.remaining() > std::chrono::nanoseconds(0)) {
        of.judge_.still_held(id, then);
        return true;
      }
      return false;
    }

    void act_with_a_lease() {
      waits(true);
      std::optional<lease> held;
      try {
        held = take();
      } catch (...) {
        judge_wait(true, true);
        throw;
      }
      judge_wait(held.has_value(), true);
      if (!held) return;
      const nanos then = of.world_.now();
      held->check();
      id = of.judge_.granted(grant(held->fence(), held->lost()), then);
      use(*held);
      (void)still(*held);
      of.judge_.given_up(id);
      give_back(std::move(*held));
    }

    void use(lease& held) {
      spend(held, s.hold / 2);
      try {
        inside(held);
      } catch (const holdfast::error& e) {
        judge_error(e.reason(), e.what());
      }
      spend(held, s.hold - s.hold / 2);
    }

    void spend(const lease& held, nanos length) {
      const nanos until = of.world_.now() + length;
      do {
        if (!still(held)) return;
        const nanos left = until - of.world_.now();
        if (left > 0) of.world_.sleep(of.world_.random().between(1, left));
      } while (of.world_.now() < until);
      (void)still(held);
    }

    void inside(lease& held) {
      using inside = step::inside;
      switch (s.what) {
        case inside::extend:
          of.trace_.add("extends " + name);
          return held.extend();
        case inside::extend_to:
          of.trace_.add("extends " + name + " to more");
          return held.extend(in_ms(does.lease * 3 / 2));
        case inside::extend_late:
          of.trace_.add("extends " + name + " without waiting");
          return async_extend(held).start([](const auto&) {});
        case inside::upgrade:
          if (!at.shared || !s.shared) return;
          of.trace_.add("upgrades " + name);
          if (at.shared->try_upgrade(held)) holds_otherwise(held, all_readers);
          return;
        case inside::downgrade:
          if (!at.shared || s.shared) return;
          of.trace_.add("downgrades " + name);
          (void)still(held);
          relies_on_less(held.fence());
          try {
            at.shared->downgrade(held);
          } catch (const holdfast::error&) {
            holds_otherwise(held, all_readers);  // check() says nothing else
            throw;
          }
          of.trace_.add("downgraded");
          return;
        default:
          return;
      }
    }

    // From the call on: others may come in before it returns.
    void relies_on_less(std::uint64_t fence) { of.judge_.relies_on_less(id, 1, fence); }

    void holds_otherwise(const lease& held, std::uint32_t weight) {
      const nanos then = of.world_.now();
      if (held.remaining() <= std::chrono::nanoseconds(0)) return;
      of.judge_.changed(id, weight, held.fence(), then);
    }

    void give_back(lease held) {
      of.trace_.add("gives back " + name);
      if (s.back == step::end::destroy) return;
      std::error_code e;
      if (s.how == step::style::callback) {
        auto how = async_release(std::move(held)).future().get();
        if (!how) e = make_error_code(how.error().code);
      } else {
        e = held.release();
      }
      of.trace_.add("gave back " + name);
      if (e) judge_error(static_cast<errc>(e.value()), "release: " + e.message());
    }

    // ---- several names together

    static holdfast::multi_member member(locks& l) {
      if (l.mutex) return *l.mutex;
      if (l.shared) return *l.shared;
      return *l.semaphore;
    }

    std::optional<holdfast::multi_lease> take(holdfast::multi_lock& together) {
      if (s.wait == never) return together.acquire(stop());
      if (s.wait == 0) return together.try_acquire();
      return together.try_acquire_for(duration(s.wait), std::nullopt, stop());
    }

    void act_with_several() {
      std::vector<holdfast::multi_member> members;
      for (auto& l : all) members.push_back(member(l));
      holdfast::multi_lock together(members);
      ++of.several_;
      std::optional<holdfast::multi_lease> held;
      try {
        held = take(together);
      } catch (...) {
        --of.several_;
        throw;
      }
      --of.several_;
      judge_wait(held.has_value(), true);
      if (!held) return;
      const nanos then = of.world_.now();
      held->check();
      const auto fences = held->fences();
      std::vector<int> ids;
      const auto give_up = [&] {
        for (const int one : ids) of.judge_.given_up(one);
      };
      for (std::size_t i = 0; i < all.size(); ++i) {
        const bool permits = all[i].semaphore != nullptr;
        const std::uint32_t most = all[i].shared ? all_readers
                                   : permits     ? all[i].semaphore->capacity()
                                                 : 1;
        ids.push_back(of.judge_.granted(
            {&p, of.name_of(i), permits ? 1 : most, most, fences[i], asked, held->lost()}, then));
      }
      try {
        for (int i = 0; i < 4; ++i) {
          const nanos now = of.world_.now();
          held->check();
          for (const int one : ids) of.judge_.still_held(one, now);
          of.world_.sleep(s.hold / 4);
        }
      } catch (const holdfast::error& e) {
        judge_error(e.reason(), e.what());
      }
      give_up();
      of.trace_.add("gives back all");
      if (s.back == step::end::destroy) return;
      const auto e = held->release();
      if (e) judge_error(static_cast<errc>(e.value()), "release: " + e.message());
    }

    // ---- as the standard has it

    template <class Lock>
    bool lock(Lock& l) {
      if (s.wait == never && s.stop_after == never) {
        l.lock();
        return true;
      }
      if (s.wait == never) return l.lock(stop());
      if (s.wait == 0) return l.try_lock();
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

    template <class Lock>
    bool take_in_standard_style(Lock& l) {
      if constexpr (std::is_same_v<Lock, holdfast::shared_mutex>) {
        if (s.shared) return lock_shared(l);
      }
      return lock(l);
    }

    template <class Lock>
    void unlock(Lock& l) {
      of.trace_.add("unlocks " + name);
      if constexpr (std::is_same_v<Lock, holdfast::shared_mutex>) {
        if (l_shared) return l.unlock_shared();
      }
      l.unlock();
    }

    bool l_shared = false;

    template <class Lock>
    void act_in_standard_style(Lock& l) {
      waits(true);
      bool got = false;
      l_shared = s.shared;
      try {
        got = take_in_standard_style(l);
      } catch (...) {
        judge_wait(true, false);
        throw;
      }
      judge_wait(got, s.wait == never);
      if (!got) return;
      try {
        const nanos then = of.world_.now();
        l.check();
        id = of.judge_.granted(grant(l.fence(), l.lost()), then);
        hold_for(l, s.hold / 2);
        inside(l);
        hold_for(l, s.hold - s.hold / 2);
      } catch (const holdfast::error& e) {
        judge_error(e.reason(), e.what());
      }
      of.judge_.given_up(id);
      unlock(l);
    }

    template <class Lock>
    void inside(Lock& l) {
      if constexpr (std::is_same_v<Lock, holdfast::recursive_mutex>) {
        if (s.what != step::inside::again) return;
        if (!l.try_lock()) {
          of.judge_.violated("a recursive_mutex can be locked again", name);
        } else {
          l.unlock();
        }
      } else if constexpr (std::is_same_v<Lock, holdfast::shared_mutex>) {
        if (s.what == step::inside::upgrade && s.shared) {
          of.trace_.add("upgrades " + name);
          if (!l.try_upgrade()) return;
          l_shared = false;
          const nanos then = of.world_.now();
          l.check();
          of.judge_.changed(id, all_readers, l.fence(), then);
        } else if (s.what == step::inside::downgrade && !s.shared) {
          of.trace_.add("downgrades " + name);
          relies_on_less(l.fence());
          try {
            l.downgrade();
          } catch (const holdfast::error&) {
            const nanos then = of.world_.now();
            l.check();
            of.judge_.changed(id, all_readers, l.fence(), then);
            throw;
          }
          l_shared = true;
        }
      }
    }

    template <class Lock>
    void hold_for(Lock& l, nanos length) {
      const nanos until = of.world_.now() + length;
      do {
        check(l);
        const nanos left = until - of.world_.now();
        if (left > 0) of.world_.sleep(of.world_.random().between(1, left));
      } while (of.world_.now() < until);
      check(l);
    }

    template <class Lock>
    void check(Lock& l) {
      const nanos then = of.world_.now();
      l.check();
      of.judge_.still_held(id, then);
    }
  };

  const plan& plan_;
  world world_;
  trace trace_;
  judge judge_;
  server server_;
  std::vector<process*> processes_;
  std::multimap<std::string, const process*> waiting_;
  std::map<std::string, nanos> idle_since_;
  nanos disturbed_at_ = -1000 * second;
  int several_ = 0;  ///< that are being acquired
  bool over_ = false;
  bool loses_ = false;  ///< somebody does not renew: then a loss is no trouble
};

}  // namespace

outcome run(const plan& p, bool traced) { return scene(p, traced).play(); }

}  // namespace simulation
