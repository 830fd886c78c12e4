#pragma once

#include <cstdint>
#include <utility>

#include "simulation/plan.hpp"

/// Helpers shared by the functions that arrange plans.
namespace simulation {

/// Removes all faults, so that order and durations can be judged exactly.
void make_calm(plan& p);
/// Removes all faults, and no thread is late.
void make_punctual(plan& p);

/// Resets the process: it only renews, from the start of the run, and has no steps yet.
void make_plain(process_plan& one, nanos lease);
/// Sets the number of processes and resets each; their releases wait for the answer.
void set_processes(plan& p, std::size_t many, nanos lease);
/// The same, on a machine whose threads are never late, with leases of that length.
void set_up(plan& p, std::size_t processes, nanos lease);
/// Adds a thread with these steps.
void give(process_plan& one, std::vector<step> steps);
/// Adds a thread without requests, so that the process stays for that long.
void remain(process_plan& one, nanos length);
lock_kind some_mutex(random_source& r);
/// Readers of a process share a hold, and the store notifies waiters at once.
void tell_at_once(plan& p);
/// The same, on a store of records or with scripts.
void tell_at_once_by_records(plan& p);
/// A redlock over three stores.
void make_votes(plan& p);
/// The same; some of the stores do not notify waiters.
void make_votes(random_source& r, plan& p);
/// Threads wait at a latch for much longer than it is kept without use.
void wait_longer_than_it_is_kept(random_source& r, plan& p);
/// The names: a semaphore, a limiter, and the admission by both. Many answers are slow.
void give_permits_and_tokens(random_source& r, plan& p);

/// Adds this many threads to a process, each with this many steps.
template <class F>
void add_threads(random_source& r, process_plan& one, std::uint64_t threads, F make) {
  for (; threads > 0; --threads) {
    thread_plan work;
    for (auto steps = 3 + r.below(8); steps > 0; --steps) work.steps.push_back(make());
    one.threads.push_back(std::move(work));
  }
}

}  // namespace simulation
