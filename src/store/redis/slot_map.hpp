#pragma once

#include <array>
#include <holdfast/result.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "store/redis/options.hpp"
#include "store/redis/resp.hpp"

namespace holdfast::store::redis {

/// The keys of a cluster are in 16384 slots; all keys of one name are in the same slot.
using slot_number = std::uint16_t;
inline constexpr std::size_t slot_count = 16'384;

/// The slot of the keys of a name: CRC16 of their hash tag.
slot_number slot_of(std::string_view name) noexcept;
/// The slot of a whole key, by the server's own rule.
slot_number slot_of_key(std::string_view key) noexcept;
/// The part of the key that decides the slot: its tag, if it has one.
std::string_view what_is_hashed(std::string_view key) noexcept;
/// The key beside a dialect's key that holds the time until which earlier commands are too late:
/// late.lua. It begins with the same prefix, because a user's rights may be restricted to that
/// prefix. It is in the same slot of a cluster, unless a brace in the key makes that impossible.
std::string late_mark(std::string_view prefix, std::string_view key, bool in_a_cluster);

/// Which node has which slots, as one of the nodes returned it. A value, without any I/O.
class slot_map {
 public:
  slot_map() { owners_.fill(nobody); }

  /// Reads the answer to CLUSTER SLOTS. `asked` replaces the address of a node that does not know
  /// its own.
  static result<slot_map> read(const resp_value& answer, const address& asked);

  const address* owner(slot_number slot) const noexcept;
  void move(slot_number slot, const address& to);
  /// The nodes that have slots.
  std::vector<address> primaries() const;
  const std::vector<address>& nodes() const noexcept { return nodes_; }

 private:
  static constexpr std::uint16_t nobody = 0xFFFF;
  std::uint16_t number_of(const address& a);

  std::vector<address> nodes_;
  std::array<std::uint16_t, slot_count> owners_;
};

/// `MOVED 3999 127.0.0.1:6381`, `ASK 3999 …`: the node to ask instead.
struct redirection {
  bool only_this_time = false;  ///< ASK
  slot_number slot = 0;
  address to{};
};
std::optional<redirection> read_redirection(std::string_view error, const address& asked);

/// TRYAGAIN, CLUSTERDOWN: the same request will succeed soon.
bool says_later(std::string_view error) noexcept;

}  // namespace holdfast::store::redis
