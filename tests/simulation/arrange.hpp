#pragma once

#include <utility>

#include "simulation/plan.hpp"

/// What arranges a plan, here and in the files beside it.
namespace simulation {

/// Nothing goes wrong, so that order and lengths can be judged exactly.
void make_calm(plan& p);

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
