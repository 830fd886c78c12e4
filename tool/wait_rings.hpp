#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// Rings among processes that wait at names. The memory grows as waiters + holders, not as their
/// product: a waiter waits at a name, and the name has its holders once.
namespace holdfast::tool {

struct name_holder {
  std::size_t process = 0;
  std::uint64_t weight = 1;
};

/// A name with its holders. The end of a process counts as a name that this process holds.
struct held_name {
  std::string name;                    ///< empty: the end of the one holder
  std::uint64_t capacity = 0;          ///< 0: each holder has to go
  std::vector<name_holder> holders{};  ///< the heaviest first

  /// The number of first holders that have to go before a waiter of that weight gets the name. For
  /// one permit of several that may be none: any other holder can free it.
  std::size_t in_the_way_of(std::uint64_t weight) const;
};

struct wait_at_name {
  std::size_t process = 0;
  std::size_t name = 0;  ///< index of the held_name
  std::uint64_t weight = 1;
  std::chrono::system_clock::time_point since{};
};

struct ring_step {
  std::size_t wait = 0;  ///< index of the wait_at_name
  std::size_t to = 0;    ///< the process that is waited for
  auto operator<=>(const ring_step&) const = default;
};
using wait_ring = std::vector<ring_step>;

/// The shortest ring through each process that is in one and in none of those before, in the order
/// of the processes. A process that waits for itself is two threads at one lock, which is no ring.
std::vector<wait_ring> find_rings(std::size_t processes, std::span<const held_name> names,
                                  std::span<const wait_at_name> waits);

}  // namespace holdfast::tool
