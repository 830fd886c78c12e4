#pragma once

#include <cstddef>
#include <cstdint>
#include <holdfast/store/contender_store.hpp>
#include <span>
#include <vector>

/// Whose turn is it, and if not mine, whom do I watch? The one place that decides for every
/// contender store. Pure.
///
/// Contenders stand in the order in which the store let them in, each with a weight. Those at the
/// front whose weights fit into the capacity together have it; all others wait, and nobody passes
/// one that does not fit yet. So who has it keeps it whoever comes or goes.
///
/// Who waits is woken when one that it watches goes, and decides again. To watch all those ahead
/// wakes everybody at every departure; to watch one loses wake-ups, where several have room. Left
/// unwatched are, from the front, as many as could all go without it being my turn then: whenever
/// it has become my turn, one that I watch has gone. That is the predecessor of an exclusive
/// contender, the nearest exclusive one ahead of a reader, the `capacity` nearest of a semaphore.
namespace holdfast::family {

struct decision {
  bool mine = false;
  std::uint32_t position = 0;      ///< of one that waits: 1 is next
  std::vector<std::size_t> watch;  ///< of one that waits: which of those ahead, front to back
};

/// `me` is an index of `line`.
decision decide(std::span<const store::contender> line, std::size_t me, std::uint32_t capacity);

/// Whether an owner that holds, and has taken a second place `raised` at the end, is alone: nobody
/// else between has it. Who came after `raised` waits for it.
bool alone(std::span<const store::contender> line, std::size_t raised, std::uint32_t capacity);

}  // namespace holdfast::family
