#pragma once

#include <cstddef>
#include <cstdint>
#include <holdfast/store/contender_store.hpp>
#include <span>
#include <string>
#include <vector>

/// Decides whose turn it is; and, for a waiter, which nodes it watches. The only place where
/// contender stores decide that. Pure.
///
/// Contenders are queued in the order in which the store admitted them, each with a weight. The
/// contenders at the front whose weights fit into the capacity together hold the lock. All others
/// wait, and none passes a contender that does not fit yet. So a holder keeps the lock, whichever
/// contenders come or go. A contender of another kind or capacity is refused, unless it is the
/// first. Until it has left, it stands in the way of all contenders behind it, whatever its weight.
///
/// A waiter is notified when a node that it watches vanishes, and decides again. Watching all nodes
/// ahead would wake all waiters at every departure. Watching a single node would lose wake-ups
/// where several fit. From the front, a waiter leaves as many nodes unwatched as could all vanish
/// without its turn coming: whenever its turn comes, a node that it watches has vanished. That
/// leaves the predecessor of an exclusive contender, the nearest exclusive node ahead of a reader,
/// and the `capacity` nearest nodes of a semaphore.
namespace holdfast::family {

using line = std::vector<store::contender>;

struct decision {
  bool mine = false;
  std::uint32_t position = 0;  ///< of a waiter: 1 is next
  /// Of a waiter: the indices of the nodes ahead that it watches, front to back.
  std::vector<std::size_t> watch;
};

/// `me` is an index of `all`.
decision decide(std::span<const store::contender> all, std::size_t me, std::uint32_t capacity);

/// Whether the owner that holds at `first`, and has added a second node at `raised`, is the only
/// holder, stays so whichever contender leaves, and has a smaller fence than each later holder. A
/// contender behind `raised` waits for that node. One between the two may fit beside `first` when
/// others give up, and it has a smaller fence than `raised`: so nobody may wait there.
bool alone(std::span<const store::contender> all, std::size_t first, std::size_t raised);

// ---- what else a queue tells

/// Whether this is the record of a latch, which precedes all contenders.
bool is_record(const store::contender& c);
/// Limits weights to the capacity. Programs that are not holdfast's know no capacity: they want all
/// of it, or one as readers.
void fit(line& all, std::uint32_t capacity);
/// Returns the size of `all` if the node is not in it.
std::size_t index_of(const line& all, const std::string& node);
std::vector<std::string> nodes_of(const line& all, const store::owner_id& owner);
/// The first contender of holdfast, which determines the kind and the capacity of the name. Null if
/// there is none.
const store::contender* first_of_ours(const line& all);

}  // namespace holdfast::family
