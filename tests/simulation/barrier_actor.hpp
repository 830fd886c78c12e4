#pragma once

#include <string_view>

#include "simulation/meeting_actor.hpp"

namespace simulation {

/// How a participant arrives and waits at a barrier that may break.
enum class barrier_deed {
  wait_for,
  wait_until_stopped,
  async_arrive,
  async_wait,
  async_arrive_and_wait,
  async_stopped,
  enter_and_leave,
  drop,
  async_drop
};
barrier_deed how_to_meet(const process_plan& of, const step& s);
std::string_view word_of(barrier_deed d) noexcept;

/// Arrives again and again, also after a phase broke.
void act_at_a_barrier(const actor& who, meeting& mine);

}  // namespace simulation
