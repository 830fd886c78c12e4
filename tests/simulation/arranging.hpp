#pragma once

#include <cstdint>
#include <utility>

#include "simulation/plan.hpp"

/// What the functions that arrange plans have in common.
namespace simulation {

/// Nothing goes wrong, so that order and lengths can be judged exactly.
void make_calm(plan& p);
/// Nothing goes wrong, and no thread is late.
void make_punctual(plan& p);

/// From its beginning it does nothing by itself but renew, and has nothing to do yet.
void make_plain(process_plan& one, nanos lease);
/// So many of them; what they give back they wait for.
void set_processes(plan& p, std::size_t many, nanos lease);
/// So many processes on a machine whose threads are never late, with leases of that length.
void set_up(plan& p, std::size_t processes, nanos lease);
/// One thread more, with these steps …
void give(process_plan& one, std::vector<step> steps);
/// … or with none, so that the process remains.
void remain(process_plan& one, nanos length);
lock_kind some_mutex(random_source& r);
/// Readers of a process share a hold, and others hear at once of what is free.
void tell_at_once(plan& p);
/// A redlock over three stores.
void make_votes(plan& p);
/// The names: a semaphore, a limiter, and the admission by both. Many answers are slow.
void give_permits_and_tokens(random_source& r, plan& p);

/// So many threads of one process, each with so many steps.
template <class F>
void add_threads(random_source& r, process_plan& one, std::uint64_t threads, F make) {
  for (; threads > 0; --threads) {
    thread_plan work;
    for (auto steps = 3 + r.below(8); steps > 0; --steps) work.steps.push_back(make());
    one.threads.push_back(std::move(work));
  }
}

}  // namespace simulation
