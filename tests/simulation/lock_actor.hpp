#pragma once

#include <holdfast/holdfast.hpp>
#include <memory>
#include <vector>

#include "simulation/actor.hpp"

namespace simulation {

/// The locks of one process for one name; one of the pointers is set.
struct locks {
  const holdfast::session* session = nullptr;
  std::unique_ptr<holdfast::mutex> mutex;
  std::unique_ptr<holdfast::recursive_mutex> recursive;
  std::unique_ptr<holdfast::shared_mutex> shared;
  std::unique_ptr<holdfast::semaphore> semaphore;
  std::unique_ptr<holdfast::counting_semaphore> counting;
};

/// `otherwise`: with terms that differ from those of the process's other locks.
locks make_locks(const scene& of, const holdfast::session& s, std::size_t i,
                 const process_plan& does, bool otherwise = false);
/// A try with an object of another kind at the name. If it holds, nobody holds the lock.
void act_as_another_kind(const actor& who, const locks& at);
/// Acquires the lock of the step, does something under it, and releases it.
void act_on_locks(const actor& who, std::vector<locks>& all);

}  // namespace simulation
