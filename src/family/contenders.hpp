#pragma once

#include <cstddef>
#include <cstdint>
#include <holdfast/store/contender_store.hpp>
#include <span>
#include <string>
#include <vector>

/// Whose turn is it, and if not mine, what do I watch? The one place that decides for every
/// contender store. Pure.
///
/// Contenders stand in the order in which the store let them in, each with a weight. Those at the
/// front whose weights fit into the capacity together have it; all others wait, and nobody passes
/// one that does not fit yet. So a holder keeps it, whichever contenders come or go.
///
/// A waiter is woken when one that it watches goes, and decides again. To watch all those ahead
/// wakes everybody at every departure; to watch one loses wake-ups, where several have room. Left
/// unwatched are, from the front, as many as could all go without it being my turn then: whenever
/// it has become my turn, one that I watch has gone. That is the predecessor of an exclusive
/// contender, the nearest exclusive one ahead of a reader, the `capacity` nearest of a semaphore.
namespace holdfast::family {

using line = std::vector<store::contender>;

struct decision {
  bool mine = false;
  std::uint32_t position = 0;      ///< of one that waits: 1 is next
  std::vector<std::size_t> watch;  ///< of one that waits: which of those ahead, front to back
};

/// `me` is an index of `all`.
decision decide(std::span<const store::contender> all, std::size_t me, std::uint32_t capacity);

/// Whether the owner that holds at `first`, and has taken a second place at `raised`, is alone and
/// stays so, whichever contender leaves. One that came after `raised` waits for that place. One
/// between the two waits for others at most, which may give up: so there must be none that fits
/// beside `first`, whether it has its turn already or not. (One that does not fit beside it had to
/// wait ever since it came, so that its weight is still the one that it entered with.)
bool alone(std::span<const store::contender> all, std::size_t first, std::size_t raised,
           std::uint32_t capacity);

// ---- what a line says beside that

/// The record of a latch, which stands first.
bool is_record(const store::contender& c);
/// Other people's programs know no capacity: theirs want all of it, or one as readers.
void fit(line& all, std::uint32_t capacity);
/// The size of the line if it is not there.
std::size_t index_of(const line& all, const std::string& node);
std::vector<std::string> nodes_of(const line& all, const store::owner_id& owner);
/// The first that is ours says what the name is in use as. Null if there is none.
const store::contender* first_of_ours(const line& all);

}  // namespace holdfast::family
