#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace holdfast::faultproxy {

/// up: from the client to the server; down: from the server to the client.
enum class way : std::uint8_t { up, down };
inline constexpr std::array both_ways{way::up, way::down};

/// The present faults of the network.
struct faults {
  struct one_way {
    bool stalled = false;     ///< bytes wait until the stall is over
    bool swallowing = false;  ///< bytes and the end of a stream are lost, and neither side notices
    std::optional<std::size_t> cut_after{};  ///< this many bytes pass, then the connection is cut
  };
  std::chrono::microseconds latency{0};  ///< each way
  std::size_t bytes_per_second = 0;      ///< each way of each connection; 0: no limit
  bool refusing = false;                 ///< new connections are reset at once
  std::array<one_way, 2> in{};

  one_way& operator[](way w) noexcept { return in[static_cast<std::size_t>(w)]; }
  const one_way& operator[](way w) const noexcept { return in[static_cast<std::size_t>(w)]; }
};

}  // namespace holdfast::faultproxy
