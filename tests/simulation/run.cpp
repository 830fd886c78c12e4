#include "simulation/run.hpp"

#include <algorithm>
#include <csignal>
#include <fstream>

#include "simulation/encounters.hpp"
#include "simulation/ending_actor.hpp"
#include "simulation/rate_actor.hpp"
#include "simulation/scene.hpp"

namespace simulation {

namespace {

server_traits traits_of(const plan& p, store_kind kind, int drift_per_mille, nanos ahead) {
  server_traits t;
  t.ahead = ahead;
  t.notifications = kind != store_kind::untold;
  t.sees_death = kind == store_kind::sees_death;
  if (kind == store_kind::scripts) t.keeps = server_traits::what::scripts;
  if (kind == store_kind::postgres) t.keeps = server_traits::what::postgres_rows;
  if (kind == store_kind::mariadb) t.keeps = server_traits::what::mariadb_rows;
  if (kind == store_kind::advisory) t.keeps = server_traits::what::advisory;
  if (kind == store_kind::memcached) {
    t.keeps = server_traits::what::items;
    t.notifications = false;
  }
  if (kind == store_kind::redisson) t.keeps = server_traits::what::redisson;
  if (kind == store_kind::contenders) t.keeps = server_traits::what::lines;
  if (kind == store_kind::slots || kind == store_kind::told_slots) {
    t.keeps = server_traits::what::slots;
    t.notifications = kind == store_kind::told_slots;
    t.outlasts = t.notifications ? 0 : 2 * second;
  }
  t.drift_per_mille = drift_per_mille;
  t.command_timeout = p.command_timeout;
  t.session_timeout = p.session_timeout;
  t.repeats = kind == store_kind::contenders && p.network.unordered;
  t.wall_only_grows = p.wall_only_grows;
  return t;
}

}  // namespace

scene::scene(const plan& p, bool traced)
    : whole(p),
      here(p.seed, p.machine),
      log(here, traced),
      rules(here, log, p.store == store_kind::contenders ? "among contenders: " : ""),
      notes(rules, p),
      said(here),
      order(rules),
      together(rules) {
  if (p.about == theme::deadlocks) {
    const bool exclusive = std::none_of(p.names.begin(), p.names.end(),
                                        [](const auto& n) { return n.kind == lock_kind::shared; });
    notes.rings.emplace(rules, here, exclusive);
  }
  const auto add = [&](std::string url, store_kind kind, int drift) {
    const nanos ahead = p.clocks_apart * static_cast<nanos>(stores.size());
    stores.push_back(std::make_unique<server>(here, log, std::move(url),
                                              traits_of(p, kind, drift, ahead), p.network));
  };
  add("simulated:", p.store, p.drift_per_mille);
  // The process asks after each third of the hold's time, and one request may take its time, too.
  // After a silence the process gets no such time: it knows how long the server tolerates silence,
  // even if the process itself was suspended.
  stores.front()->on_end_of_a_holder = [this](std::int64_t granted_at, bool was_silent) {
    const nanos later = was_silent ? 0 : 2 * second + second / 2;
    rules.connection_ended(granted_at, here.now() + later, was_silent);
  };
  stores.front()->on_violation = [this](const char* rule, std::string what) {
    rules.violated(rule, std::move(what));
  };
  said.on_hurry = [this](int process, const std::string& name) {
    if (whole.seed < dividing_seeds) return;
    rules.violated("no waiter asks a store again and again without a pause",
                   "P" + std::to_string(process) + ": " + name);
  };
  said.on_refusal = [this](std::size_t at, const std::string& name, const auto& owner) {
    judge_refusal(at, name, owner);
    here.at(here.now() + 2 * second, [this, at, name, owner] {
      if (said.asked(name, owner) == 1) judge_refusal(at, name, owner);
    });
  };
  said.on_grant = [this](std::size_t at, const std::string& name, const auto& owner) {
    judge_grant(at, name, owner);
  };
  stores.front()->on_news = [this](const holdfast::store::notification& n) {
    judge_news(n.name, n.owner);
  };
  for (std::size_t i = 0; i < p.others.size(); ++i) {
    add("simulated:" + std::to_string(i + 1), p.others[i],
        i % 2 == 0 ? -p.drift_per_mille : p.drift_per_mille);
  }
}

void scene::begin() {
  if (log.on()) here.keep_stacks();
  for (auto& [i, book] : notes.phases) stores.front()->is_looked_at(name_of(i), book);
  const bool cuts = whole.seed >= troubled_seeds && !whole.faults.empty();
  for (auto& [i, book] : notes.phases) {
    if (cuts && whole.only_short_cuts()) book.never_breaks();
    const bool calm = whole.seed >= encounter_seeds && whole.calm() && whole.renews();
    if (calm) book.never_breaks();
  }
  for (std::size_t i = 0; i < whole.processes.size(); ++i) {
    process& p = here.add_process();
    processes.push_back(&p);
    here.at(whole.processes[i].begins, [this, &p, i] {
      if (p.dead) return;
      here.start(p, "main", [this, &p, i] { live(p, whole.processes[i]); });
    });
  }
  for (const auto& f : whole.faults) {
    here.at(f.at, [this, &f] { strike(f); });
  }
  here.at(end_of_faults(), [this] {
    for (const auto& s : stores) s->end_of_faults();
  });
  watch();
}

namespace {

bool in_a_debugger() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "TracerPid:") continue;
    return status >> word && word != "0";
  }
  return false;
}

}  // namespace

std::string scene::play_until(nanos when) {
  begin();
  here.at(when, [this] {
    if (in_a_debugger()) (void)std::raise(SIGTRAP);
    here.stop();
  });
  (void)here.run(longest());
  return log.text(400) + blocked() + "\n";
}

void scene::note(const process& p, const process_plan& does, const step& s,
                 const decltype(process::met)& before) {
  std::uint32_t troubles = 0;
  for (std::size_t i = 0; i < trouble_count; ++i) troubles |= (p.met[i] > before[i] ? 1U : 0U) << i;
  for (const auto& operation : operations_of(whole, does, s)) met[operation] |= troubles;
}

outcome scene::play() {
  begin();
  const bool all_over = here.run(longest());
  if (!rules.found() && !all_over) rules.violated("every call returns", blocked());
  if (!rules.found()) look_at_what_is_left(end_of_faults());
  outcome o;
  o.found = rules.found();
  for (const auto& s : stores) o.commands += s->commands();
  o.grants = rules.grants();
  o.switches = here.switches();
  o.simulated = here.now();
  o.met = met;
  o.trace = log.text(400);
  return o;
}

nanos scene::end_of_faults() const {
  nanos last = 9 * whole.longest_lease();
  for (const auto& f : whole.faults) last = std::max(last, f.at + f.length);
  // A proxy delivers messages that nobody waits for any more.
  const nanos late = whole.network.slowest_late;
  return last + second + (late > 10 * second ? late : 0);
}

nanos scene::longest() const {
  nanos all = end_of_faults() + 300 * second;
  for (const auto& p : whole.processes) {
    for (const auto& t : p.threads) {
      for (const auto& s : t.steps) all += s.think + s.hold + (s.wait == never ? 0 : s.wait);
    }
  }
  return all;
}

bool scene::has_a_holder(const std::string& name) {
  const auto [first, last] = unjudged.equal_range(name);
  // At that store, a lock that ends in the process ends at the server at once.
  const bool at_once = whole.store == store_kind::advisory;
  return rules.has_a_holder(name, at_once) || notes.has_permits(name, here.now()) ||
         std::any_of(first, last, [](const auto& one) { return !one.second->dead; });
}

bool scene::is_taken(std::size_t i) {
  const auto& n = whole.names[i];
  const std::string name = name_of(i);
  if (n.kind != lock_kind::semaphore || unjudged.contains(name)) return has_a_holder(name);
  std::uint32_t most = 1;
  for (const auto& one : whole.processes) {
    for (const auto& t : one.threads) {
      for (const step& s : t.steps) most = std::max(most, s.weight);
    }
  }
  return rules.weight_of(name) + most > n.capacity && has_a_holder(name);
}

void scene::watch() {
  here.at(here.now() + 50 * millisecond, [this] {
    bool any = false;
    for (std::size_t i = 0; i < whole.names.size(); ++i) {
      const std::string name = name_of(i);
      const bool permits = whole.names[i].kind == lock_kind::semaphore;
      nanos last = std::max({disturbed_at, unclaimed_until[name],  // perhaps between two checks
                             permits ? rules.last_gone(name) : rules.last_had(name)});
      bool wanted = false;
      for (const auto& [n, p] : waiting) wanted |= n == name;
      any |= wanted;
      // A multi_lock keeps the locks it has while it waits for the rest.
      bool kept = false;
      for (std::size_t k = 0; at_several > 0 && k < whole.names.size(); ++k) {
        kept |= has_a_holder(name_of(k));
      }
      if (!wanted || kept || is_taken(i)) {
        idle_since[name] = here.now();
        continue;
      }
      for (const auto* const p : processes) {
        if (!p->dead) last = std::max(last, disturbed(*p));
      }
      // Only the first waiter asks when the first of the permits ends. If it leaves, the next one
      // asks later.
      constexpr nanos looks_within = second / 2;  // the second waiter's polls
      if (permits && !whole.renews())
        last = std::max(last, rules.last_granted(name) + looks_within);
      const bool ends = std::any_of(whole.names.begin(), whole.names.end(),
                                    [](const auto& n) { return n.kind == lock_kind::expiring; });
      const nanos longest = whole.only_deaths() && !ends          ? 150 * millisecond
                            : all_is_well(last, idle_since[name]) ? bound()
                            : !whole.calm() ? 2 * whole.longest_lease() + 10 * second
                            : ends          ? bound()
                                            : bound_of_waits();
      if (here.now() - std::max(idle_since[name], last) > longest) {
        rules.violated("no thread waits for what is free",
                       "for " + std::to_string(longest / millisecond) +
                           " ms; at the store: " + at_the_stores(name) + "\n" + blocked());
      }
    }
    watch_those_who_want_all();
    watch_readers();
    watch_conditions();
    watch_rings();
    watch_crowds();
    // To read what a store has takes long, on the scripted one most.
    const bool looks = here.now() / (200 * millisecond) != looked_at;
    if (looks || whole.store != store_kind::scripts) watch_grants(), watch_holds();
    if (looks) {
      looked_at = here.now() / (200 * millisecond);
      watch_users();
      watch_silence();
      watch_places();
      watch_watches();
      watch_latches();
      watch_what_stays();
      watch_what_is_left_open();
    }
    const bool alive = std::any_of(processes.begin(), processes.end(),
                                   [](const auto* p) { return p->running > 0; });
    if (!over && (alive || any || here.now() < second)) watch();
  });
}

// All of these threads take the names in the same order, so one of them gets each free name.
void scene::watch_those_who_want_all() {
  const bool wanted =
      std::any_of(want_all.begin(), want_all.end(), [](const auto* p) { return !p->dead; });
  bool held = false;
  for (std::size_t i = 0; i < whole.names.size(); ++i) held |= has_a_holder(name_of(i));
  held |= rules.grants() != grants_then;  // perhaps for a shorter time than between two checks
  if (!wanted || held) {
    all_free_since = here.now();
    grants_then = rules.grants();
    return;
  }
  nanos last = disturbed_at;
  for (const auto* const p : processes) {
    if (!p->dead) last = std::max(last, disturbed(*p));
  }
  // A thread that died after its turn had come delays the next one by the claim time.
  const nanos longest = whole.only_deaths() ? 3 * second + second / 2
                        : whole.calm()      ? bound()
                                            : 2 * whole.longest_lease() + 10 * second;
  if (here.now() - std::max(all_free_since, last) <= longest) return;
  std::string all;
  for (std::size_t i = 0; i < whole.names.size(); ++i) all += " " + at_the_stores(name_of(i));
  rules.violated("no thread waits for several names that are all free", all + "\n" + blocked());
}

// Whether `since` is so long after the last trouble that everything the trouble left behind had
// been found by then.
bool scene::all_is_well(nanos trouble, nanos since) const {
  const bool late = whole.network.slowest_late > 10 * second;
  return whole.seed >= troubled_seeds && !whole.calm() && !late &&
         since > trouble + 2 * whole.longest_lease() + 10 * second;
}

void scene::watch_latches() {
  for (const auto& [i, book] : notes.latches) {
    if (const auto left = stores[whole.names[i].store]->left_at_latch(name_of(i))) {
      book.stands(*left);
    }
    if (whole.calm() && !book.has_forgotten()) watch_those_at_a_latch(i);
  }
}

// Each owner is listed while its call waits, however often the call polls.
void scene::watch_those_at_a_latch(std::size_t i) {
  auto now = stores[whole.names[i].store]->wait_at_latch(name_of(i));
  auto& before = at_latch[i];
  for (const auto& [owner, since] : now) {
    const auto known = before.find(owner);
    if (known == before.end() || known->second == since) continue;
    rules.violated("a waiter at a latch that asks again is shown as the same waiter",
                   name_of(i) + ": " + owner.substr(0, 4) + " waits since " +
                       std::to_string(since) + " us, and before since " +
                       std::to_string(known->second));
  }
  before = std::move(now);
}

// A reader has no reason to wait while there are only readers, even if there were writers before.
void scene::watch_readers() {
  if (!whole.calm() || whole.seed < freezing_seeds) return;
  for (std::size_t i = 0; i < whole.names.size(); ++i) {
    const std::string name = name_of(i);
    const auto waits = [&](bool shares) {
      return std::any_of(line.begin(), line.end(),
                         [&](const auto& one) { return one.name == name && one.shares == shares; });
    };
    if (!waits(true) || waits(false) || at_several > 0 || !rules.only_shared(name)) {
      reads_since[name] = here.now();
      continue;
    }
    if (here.now() - reads_since[name] <= bound()) continue;
    rules.violated("no reader waits while all other users are readers",
                   at_the_stores(name) + "\n" + blocked());
  }
}

// The records that a session leaves behind when it dies must end by themselves.
void scene::watch_what_stays() {
  for (const auto& s : stores) {
    const auto keys = s->for_ever();
    if (!keys.empty()) rules.violated("every entry at the store ends by itself", keys);
    const auto early = s->ends_too_early();
    if (!early.empty()) rules.violated("each key lasts for as long as what it contains", early);
    const bool tidy = whole.seed >= blended_seeds && whole.calm();
    const auto idle = tidy ? s->left_of_queues() : std::string();
    if (!idle.empty()) rules.violated("a queue without waiters leaves no keys behind", idle);
  }
}

// If the condition is true, its waiter continues as soon as the mutex is free. A notification is
// not replaced if the store forgot it, or if the waiter that got it died after it was woken.
void scene::watch_conditions() {
  const bool with_deaths = whole.seed >= remaining_seeds;
  const bool forgets = std::any_of(whole.faults.begin(), whole.faults.end(), [&](const auto& f) {
    using kind = fault_plan::kind;
    if (f.what == kind::kill) return !with_deaths;
    return f.what != kind::cut && f.what != kind::freeze && f.what != kind::restart;
  });
  if (forgets) return;
  const nanos last = disturbed_anywhere();
  const nanos longest = whole.calm() ? bound_of_waits() : 2 * whole.longest_lease() + 10 * second;
  for (auto& [i, book] : notes.conditions) {
    const bool vain = book.tokens > 0 && book.waiting > 0 && book.sure && !book.died_with_it;
    if (!vain || has_a_holder(name_of(i - 1))) book.idle_since = here.now();
    const nanos most = all_is_well(last, book.idle_since) ? bound() : longest;
    if (here.now() - std::max(book.idle_since, last) <= most) continue;
    // A request that arrived after its own release has a queue entry, which lasts for as long as
    // other threads of its session wait. Its turn costs the waiters behind it the claim time.
    if (stores[whole.names[i].store]->has_user(name_of(i))) {
      book.idle_since = here.now();
      continue;
    }
    rules.violated("a notification wakes a waiter", at_the_stores(name_of(i)) + "\n" + blocked());
  }
}

// A waiter in a ring polls eight times a second, and must see the ring a few times.
void scene::watch_rings() {
  if (!notes.rings) return;
  nanos last = disturbed_at;
  for (const auto* const p : processes) {
    if (!p->dead) last = std::max(last, disturbed(*p));
  }
  notes.rings->look(last,
                    whole.calm() ? 1500 * millisecond : 2 * whole.longest_lease() + 10 * second);
}

std::string scene::at_the_stores(const std::string& name) const {
  std::string all;
  for (const auto& s : stores) all += (all.empty() ? "" : " | ") + s->describe(name);
  return all;
}

std::string scene::blocked() const {
  std::string all;
  for (const auto* const f : here.not_over()) {
    all += "P" + std::to_string(f->of->number) + "." + (f->name.empty() ? "bg" : f->name);
    const auto where = world::stack_of(*f);
    all += where.empty() ? " " : " in " + where + "\n";
  }
  return "still there: " + all;
}

// A used latch is remembered for a day, and so is the number of participants that dropped out.
bool scene::stays(const std::string& name) const {
  for (const auto& [i, book] : notes.latches) {
    if (name == name_of(i)) return true;
  }
  return std::any_of(notes.barriers.begin(), notes.barriers.end(), [&](const auto& b) {
    return notes.any_dropped(b.first) && name == name_of(b.first);
  });
}

void scene::look_at_what_is_left(nanos quiet) {
  over = true;
  const bool at_once = whole.calm();
  if (!at_once) {
    const nanos end = std::max(here.now(), quiet) + 2 * whole.longest_lease() + 8 * second;
    here.at(end, [] {});
    (void)here.run(end);
  }
  watch_what_stays();
  judge_open_files();
  // Permits that nobody has released end by themselves.
  if (!notes.permits.empty()) {
    const nanos end = here.now() + 2 * whole.longest_lease();
    here.at(end, [] {});
    (void)here.run(end);
  }
  judge_what_is_left_of_tokens(*this);
  // The next request removes an expired record. After a refund a record stays for a minute.
  if (!notes.rates.empty()) {
    const nanos full = here.now() + notes.full_after() + 100 * second;
    here.at(full, [] {});
    (void)here.run(full);
  }
  for (const auto& one : pending) {
    if (!one.by->dead) judge_endings(*this, *one.by, *one.what);
  }
  for (const auto& s : stores) {
    for (const auto& name : s->names()) {
      if (!stays(name)) rules.violated("nothing is left at the store", s->describe(name));
    }
  }
  const bool lists = whole.seed >= several_seeds && whole.store != store_kind::memcached;
  if (lists && whole.store != store_kind::redisson && !rules.found()) judge_what_is_listed();
}

// Asks in a new session, after all others have ended.
void scene::judge_what_is_listed() {
  process& p = here.add_process();
  here.start(p, "auditor", [this, &p] {
    for (const auto& at : stores) {
      const holdfast::session s(at->connect(p), {});
      for (const auto& name : s.names()) {
        if (!stays(name)) rules.violated("an unused name is not listed", name);
      }
    }
  });
  (void)here.run(here.now() + 10 * second);
}

// The bound depends on the steps of the threads, and on the time for which they may wait.
void scene::judge_commands(const process& p, const process_plan& does) {
  if (!punctual() || !whole.tells() || !whole.has_only_locks() || p.dead) return;
  if (whole.store >= store_kind::contenders) return;
  std::uint64_t steps = 0;
  for (const auto& t : does.threads) steps += t.steps.size();
  const auto seconds = static_cast<std::uint64_t>((here.now() - does.begins) / second + 1);
  const auto most = 100 * (steps + 2) * whole.names.size() + 60 * seconds * does.threads.size();
  if (p.commands <= most) return;
  rules.violated("no process asks a store again and again without a pause",
                 "P" + std::to_string(p.number) + ": " + std::to_string(p.commands) +
                     " commands for " + std::to_string(steps) + " steps in " +
                     std::to_string(seconds) + " s");
}

outcome run(const plan& p, bool traced) { return scene(p, traced).play(); }
std::string run_until(const plan& p, nanos when) { return scene(p, true).play_until(when); }

}  // namespace simulation
