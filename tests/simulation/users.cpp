#include <algorithm>

#include "simulation/encounters.hpp"
#include "simulation/scene.hpp"

namespace simulation {

namespace {

// Whether the step uses the name; every name, where threads nest locks.
bool is_used(const plan& whole, const step& s, std::size_t name) {
  const auto kind = whole.names[s.name].kind;
  if (s.several || whole.about == theme::deadlocks) return true;
  if (kind == lock_kind::condition && name + 1 == s.name) return true;
  const bool of_two = kind == lock_kind::both || kind == lock_kind::admission;
  return name == s.name || (of_two && name < s.name && name + 2 >= s.name);
}

}  // namespace

// Between its arrivals, too, a participant has a place at the barrier, and each thread is one.
int scene::most_entries(std::size_t i, int process) const {
  const auto now = users.find({i, process});
  const int busy = now == users.end() ? 0 : now->second;
  if (whole.names[i].kind != lock_kind::barrier) return busy;
  const auto& all = whole.processes[static_cast<std::size_t>(process) - 1].threads;
  return static_cast<int>(std::count_if(all.begin(), all.end(), [&](const auto& t) {
    return std::any_of(t.steps.begin(), t.steps.end(),
                       [&](const step& s) { return is_used(whole, s, i); });
  }));
}

void scene::uses(const process& p, const step& s, bool so) {
  for (std::size_t i = 0; i < whole.names.size(); ++i) {
    if (!is_used(whole, s, i)) continue;
    users[{i, p.number}] += so ? 1 : -1;
    const auto& does = whole.processes[static_cast<std::size_t>(p.number) - 1];
    sizes.uses(i, s.clashes ? sizes_in_use::another_kind : does.more_permits, so, here.now());
    used_at[{i, p.number}] = here.now();
    for (std::size_t at = 0; at < stores.size(); ++at) {
      for (const int whose : {0, p.number}) unaccounted_since.erase({i, whose, at});
    }
  }
}

// Each waiter has a queue entry, also after the store has dropped some, and also far from the
// front, where waiters do not poll for themselves. Threads that ask again keep the others from
// polling for long, so this rule is checked only where no thread asks twice.
void scene::watch_places() {
  plan rest = whole;
  std::erase_if(rest.faults, [](const auto& f) { return f.what == fault_plan::kind::lose_key; });
  if (whole.seed < freezing_seeds || !rest.calm() || !rest.renews() || !whole.tells()) return;
  if (whole.store > store_kind::scripts) return;  // the judge cannot read the queue entries there
  for (const auto& one : whole.processes) {
    for (const auto& t : one.threads) {
      if (t.steps.size() > 1) return;
    }
  }
  for (std::size_t i = 0; i < whole.names.size(); ++i) {
    if (whole.names[i].kind != lock_kind::fair) continue;
    const auto there = stores[whole.names[i].store]->users(name_of(i));
    for (const auto* const p : processes) {
      const auto wait = std::count_if(waiting.begin(), waiting.end(), [&](const auto& one) {
        return one.first == name_of(i) && one.second == p;
      });
      const auto at = there.find(p->number);
      const auto places = at == there.end() ? 0 : static_cast<std::ptrdiff_t>(at->second);
      if (places >= wait || at_several > 0) {
        without_place_since[{i, p->number}] = here.now();
        continue;
      }
      const nanos since = std::max(without_place_since[{i, p->number}], disturbed(*p));
      if (here.now() - since <= 4 * second) continue;
      rules.violated("each waiter has a queue entry at the store",
                     "P" + std::to_string(p->number) + " with " + std::to_string(wait) +
                         " that wait: " + at_the_stores(name_of(i)));
    }
  }
}

// The store hands over in one step what is given back or taken away. So its first waiter never
// waits for what is free. A lease that ends by itself ends without a step.
void scene::watch_grants() {
  if (!whole.calm() || !whole.renews() || !whole.tells() || !notes.permits.empty()) return;
  for (std::size_t i = 0; i < whole.names.size(); ++i) {
    const auto& n = whole.names[i];
    const bool fits = n.kind < lock_kind::latch && n.prefers == 0 &&
                      stores[n.store]->lets_one_wait_for_what_is_free(name_of(i));
    if (!fits) {
      fits_since.erase(i);
      continue;
    }
    const nanos since = fits_since.try_emplace(i, here.now()).first->second;
    if (here.now() - since <= 60 * millisecond) continue;
    rules.violated("the store lets no waiter wait for a free lock", at_the_stores(name_of(i)));
  }
}

// Where nothing goes wrong, a hold ends when its owner gives it up, and never by itself: neither
// one that its process has to renew, nor one that a waiter has to fetch.
void scene::watch_holds() {
  if (whole.seed < accounting_seeds || whole.about == theme::endings || !punctual() || loses)
    return;
  if (!notes.permits.empty()) return;
  for (std::size_t i = 0; i < whole.names.size(); ++i) {
    if (whole.names[i].kind >= lock_kind::latch) continue;
    auto now = stores[whole.names[i].store]->held_until(name_of(i));
    auto& before = held_until[i];
    for (const auto& [owner, until] : before) {
      const bool ended = !now.contains(owner) && until <= here.now() && !said.has_given_up(owner);
      if (!ended || rules.was_taken(name_of(i))) continue;
      rules.violated("no hold at a store ends by itself where nothing goes wrong",
                     name_of(i) + ": that of " + to_string(owner).substr(0, 4) + "; " +
                         at_the_stores(name_of(i)));
    }
    before = std::move(now);
  }
}

void scene::judge_refusal(std::size_t at, const std::string& name,
                          const holdfast::store::owner_id& owner) {
  if (!stores[at]->held_until(name).contains(owner)) return;
  rules.violated("a request that has certainly failed was not carried out",
                 to_string(owner).substr(0, 4) + ": " + stores[at]->describe(name));
}

// Where nothing goes wrong, the answer does not come so late that the grant is over.
void scene::judge_grant(std::size_t at, const std::string& name,
                        const holdfast::store::owner_id& owner) {
  const bool judged = whole.seed >= blended_seeds && punctual() && whole.others.empty() &&
                      whole.store < store_kind::contenders && whole.about != theme::endings;
  if (!judged || rules.was_taken(name) || said.has_given_up(owner)) return;
  if (stores[at]->has(name, owner)) return;
  rules.violated("what a store has granted is there when the answer comes",
                 to_string(owner).substr(0, 4) + ": " + at_the_stores(name));
}

// Those that wait for a condition or a barrier are told of more than what they hold. A script tells
// it before it writes its record.
void scene::judge_news(const std::string& name, const holdfast::store::owner_id& owner) {
  const bool judged =
      whole.seed >= blended_seeds && whole.store < store_kind::scripts && !said.has_given_up(owner);
  for (std::size_t i = 0; judged && i < whole.names.size(); ++i) {
    const bool is_lock = name == name_of(i) && whole.names[i].kind < lock_kind::latch;
    if (!is_lock || stores.front()->has(name, owner)) continue;
    rules.violated("a store tells nobody of a grant that it has not made",
                   to_string(owner).substr(0, 4) + ": " + at_the_stores(name));
  }
}

// A process that uses no name, and has nothing at the store, has nothing to ask.
void scene::watch_silence() {
  const bool judged = whole.seed >= accounting_seeds && whole.others.empty() && punctual() &&
                      whole.store < store_kind::contenders && whole.about != theme::endings &&
                      whole.about != theme::permits;
  if (!judged) return;
  for (const auto* const p : processes) {
    bool busy = p->dead || p->running == 0;
    nanos used = -1;
    for (std::size_t i = 0; i < whole.names.size() && !busy; ++i) {
      auto& at = *stores[whole.names[i].store];
      const auto last = used_at.find({i, p->number});
      used = std::max(used, last == used_at.end() ? -1 : last->second);
      busy = users[{i, p->number}] > 0 || at.users(name_of(i))[p->number] > 0;
    }
    const auto [its, begins] = silent.try_emplace(p->number, silence{here.now(), p->commands});
    auto& [since, commands] = its->second;
    if (busy || used >= since) {
      silent.erase(its);
    } else if (here.now() - since <= 2 * second) {
      commands = p->commands;
    } else if (p->commands > commands) {
      rules.violated("a process that uses nothing asks nothing",
                     "P" + std::to_string(p->number) + ": " +
                         std::to_string(p->commands - commands) + " commands in " +
                         std::to_string((here.now() - since) / millisecond) + " ms");
    }
  }
}

void scene::watch_crowds() {
  if (!punctual()) return;
  for (std::size_t i = 0; i < whole.names.size(); ++i) {
    const auto kind = whole.names[i].kind;
    if (kind != lock_kind::mutex && kind != lock_kind::recursive) continue;
    for (const auto* const p : processes) {
      const auto most = whole.processes[static_cast<std::size_t>(p->number) - 1].max_waiters;
      const auto wait = std::count_if(line.begin(), line.end(), [&](const auto& one) {
        return one.name == name_of(i) && one.who->of == p &&
               one.asked < here.now() - 100 * millisecond;
      });
      judge_crowd(rules, name_of(i), p->number, static_cast<std::size_t>(wait), most);
    }
  }
}

// A process whose threads all rest waits for nothing, and needs no notification of another
// process's death.
void scene::watch_watches() {
  if (whole.about == theme::endings) return;
  for (const auto* const p : processes) {
    int busy = 0;
    for (std::size_t i = 0; i < whole.names.size(); ++i) busy += users[{i, p->number}];
    const bool watches = std::any_of(stores.begin(), stores.end(),
                                     [&](const auto& s) { return s->watches_others(*p); });
    if (busy > 0 || !watches || p->dead || p->running == 0) {
      watches_since.erase(p->number);
      continue;
    }
    const nanos since = watches_since.try_emplace(p->number, here.now()).first->second;
    const nanos late = whole.machine.stall_per_100k == 0 ? second : 5 * second;
    const nanos last = std::max(since, disturbed(*p));
    if (here.now() - last <= late + whole.command_timeout) continue;
    rules.violated("a process that waits for nothing watches no other process",
                   "P" + std::to_string(p->number));
  }
}

// No process has ended or is suspended, and nothing arrives late: every lock given up is released.
bool scene::all_is_given_back() const {
  const bool late = std::any_of(processes.begin(), processes.end(), [&](const auto* p) {
    return p->dead || p->running == 0 ||
           std::any_of(stores.begin(), stores.end(),
                       [&](const auto& s) { return s->late_at(*p) >= 0; });
  });
  return !late && keeps_all() &&
         std::all_of(whole.faults.begin(), whole.faults.end(), [](const auto& f) {
           using kind = fault_plan::kind;
           return f.what == kind::cut || f.what == kind::restart || f.what == kind::freeze;
         });
}

// Every entry that a store has of a session belongs to one of its threads. A released lock and a
// left queue entry are gone when the thread is; a lease that is kept for the next thread stays for
// a while.
void scene::watch_users() {
  if (whole.about == theme::endings || whole.about == theme::permits) return;
  const bool untidy = std::any_of(whole.faults.begin(), whole.faults.end(), [](const auto& f) {
    return f.what == fault_plan::kind::evict || f.what == fault_plan::kind::step;
  });
  if (untidy) return;
  for (std::size_t i = 0; i < whole.names.size(); ++i) {
    const auto& n = whole.names[i];
    const bool meets = n.kind == lock_kind::barrier && whole.seed >= ordering_seeds;
    if (n.kind < lock_kind::latch || meets) watch_users(i, n.store);
    if (n.kind == lock_kind::latch || n.kind == lock_kind::condition) watch_waiters(i);
    if (n.kind < lock_kind::latch) watch_listeners(i);
    for (std::size_t at = 0; n.kind == lock_kind::redlock && at < stores.size(); ++at) {
      watch_users(i, at);
    }
  }
}

// A wait that has ended, for whatever reason, is in no queue. If its last request got no answer,
// its entry stays until it expires.
void scene::watch_waiters(std::size_t i) {
  if (!whole.calm() || whole.seed < ordering_seeds || whole.about == theme::endings) return;
  const auto& n = whole.names[i];
  auto& at = *stores[n.store];
  auto there = n.kind == lock_kind::latch ? at.waiters_at_latch(name_of(i)) : at.users(name_of(i));
  for (const auto* const p : processes) {
    const auto many = static_cast<int>(there[p->number]);
    const std::tuple<std::size_t, int, std::size_t> whose{i, p->number, n.store};
    if (many <= users[{i, p->number}] || p->dead || p->running == 0) {
      unaccounted_since.erase(whose);
      continue;
    }
    const nanos since = unaccounted_since.try_emplace(whose, here.now()).first->second;
    if (here.now() - since <= bound_of_waits()) continue;
    rules.violated("a wait that has ended is in no queue",
                   "P" + std::to_string(p->number) + " with " + std::to_string(many) +
                       " queue entries at " + name_of(i) + ": " + at_the_stores(name_of(i)));
  }
}

void scene::watch_users(std::size_t i, std::size_t at_store) {
  int threads = 0;
  nanos all_disturbed = -1000 * second;
  for (const auto* const p : processes) {
    threads += users[{i, p->number}];
    if (!p->dead) all_disturbed = std::max(all_disturbed, disturbed(*p));
  }
  const auto there = stores[at_store]->users(name_of(i));
  const std::size_t first = whole.names[i].kind == lock_kind::barrier ? 1 : 0;
  for (std::size_t k = first; k <= processes.size(); ++k) {
    const int number = static_cast<int>(k);
    const auto at = there.find(number);
    const auto many = at == there.end() ? 0 : static_cast<int>(at->second);
    const process* const p = k == 0 ? nullptr : processes[k - 1];
    // Nobody releases a grant that came when its thread had gone; while another thread of the
    // session waits, its queue entry does not end either.
    const bool late = p != nullptr && stores[at_store]->late_at(*p) >= 0;
    // What a session could not release when it closed ends by itself.
    const bool closed = p != nullptr && !whole.calm() &&
                        (stores[at_store]->sessions_of(*p) == 0 || closed_early.contains(number));
    const bool gone = p != nullptr && (p->dead || p->running == 0 || closed);
    const int its = p == nullptr ? threads : most_entries(i, number);
    const bool open = p != nullptr && stores[at_store]->keeps_waiting(*p);
    if (many <= its || gone || late || open) {
      unaccounted_since.erase({i, number, at_store});
      continue;
    }
    const bool by_itself = p == nullptr || whole.store == store_kind::advisory;
    nanos longest =
        by_itself      ? all_is_given_back() ? 10 * second : 2 * whole.longest_lease() + 10 * second
        : whole.calm() ? bound_of_waits()
                       : 1500 * millisecond;
    for (const auto& does : whole.processes) longest = std::max(longest, does.linger + second / 2);
    // A store that comes back with older data keeps that data until it expires.
    const bool forgets = stores[at_store]->forgot_at() >= 0 || whole.seed < unlike_seeds;
    const nanos stays = whole.store == store_kind::contenders
                            ? std::max(whole.session_timeout, 2 * whole.longest_lease())
                            : 2 * whole.longest_lease();
    const nanos forgot = forgets ? stores[at_store]->forgot_at() + stays : -1000 * second;
    const nanos last = p == nullptr ? all_disturbed : std::max(forgot, disturbed(*p));
    const nanos since =
        unaccounted_since.try_emplace({i, number, at_store}, here.now()).first->second;
    if (here.now() - std::max(since, last) <= longest) continue;
    rules.violated("each entry at the store belongs to a holder or a waiter",
                   (p == nullptr ? "all" : "P" + std::to_string(number)) + " with " +
                       std::to_string(its) + " threads at " + name_of(i) + ": " +
                       stores[at_store]->describe(name_of(i)));
  }
}

}  // namespace simulation
