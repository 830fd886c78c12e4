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
