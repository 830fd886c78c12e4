#pragma once

#include <holdfast/holdfast.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulation/lock_actor.hpp"

namespace simulation {

/// A thread at a barrier that breaks, between two of its steps.
struct participant {
  std::optional<holdfast::barrier::arrival> standing{};  ///< its arrival, for another wait
  nanos asked = 0;
  bool dropped = false;         ///< its arrival has no waiter any more: only with a limit
  nanos unheard_since = never;  ///< an arrival of this thread may be unanswered since then
  bool drops = false;           ///< one of these was to drop out
};

/// What a process has of one name that is not a lock; one of the pointers is set.
struct meeting {
  std::unique_ptr<holdfast::latch> latch;
  std::unique_ptr<holdfast::barrier> barrier;
  std::unique_ptr<holdfast::condition_variable> condition;
  std::unique_ptr<holdfast::rate_limiter> limiter;
  std::unique_ptr<holdfast::election> election;
  std::unique_ptr<holdfast::admission> admission;
  std::unique_ptr<holdfast::both<holdfast::mutex, holdfast::mutex>> both;
  std::unique_ptr<holdfast::redlock> redlock;
  std::unique_ptr<holdfast::expiring_semaphore> expiring;
  std::optional<holdfast::session> session;  ///< the session of the latch, barrier or condition
  /// Arrivals at the barrier whose wait was given up.
  std::vector<holdfast::barrier::arrival> arrivals;
  std::unique_ptr<holdfast::double_barrier> twice;
  std::map<std::string, participant> participants;
};

/// What a process has of all names.
struct belongings {
  std::vector<locks> of_locks;
  std::vector<locks> otherwise;  ///< the same locks with other terms, for steps that ask with them
  std::vector<meeting> of_meetings;
};

meeting make_meeting(scene& of, const std::vector<holdfast::session>& sessions, std::size_t i,
                     const belongings& before, const process_plan& does);
/// Carries out the deed of the step.
void act_at_meeting(const actor& who, belongings& all);

}  // namespace simulation
