#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <holdfast/clock.hpp>
#include <holdfast/options.hpp>
#include <holdfast/store/command.hpp>
#include <memory>
#include <string>

namespace holdfast::engine {

class local_queue;

/// The configuration of one primitive, the same for each of its acquisitions: its options, with the
/// `lease` that is requested from the store, and more.
struct lock_config : lock_options {
  std::string name{};  ///< the full name
  store::kind kind = store::kind::mutex;
  std::uint32_t capacity = 1;
  std::string note{};             ///< the session's note, and the reason
  bool outlives_session = false;  ///< not renewed; the hold may outlive the session
  bool in_order = false;          ///< for a fair_mutex
  bool traced = false;            ///< one of the session's debug options is on
  /// Null: every contender queues at the store itself.
  std::shared_ptr<engine::local_queue> local_queue{};
};

/// The parameters of one acquisition.
struct acquire_params {
  std::uint32_t weight = 1;
  std::int32_t priority = 0;
  bool notify_when_wanted = false;
};

/// A grant of the store, with its validity converted to this machine's clock.
struct grant {
  store::owner_id owner{};
  std::uint64_t fence = 0;
  boot_time valid_until{};
  store::owner_id secret{};  ///< the secret that the owner id was made from, if any
  bool one_turn = false;     ///< the process must not pass it from thread to thread
  bool is_claim = false;     ///< handed over for a short time, and has to be renewed
};

/// A waiter's queue entry lasts this long without a sign of life.
inline constexpr std::chrono::microseconds queue_lease = std::chrono::seconds(4);

/// The command that releases the lock, or removes the queue entry.
inline store::permits_command release_command(const store::owner_id& owner) noexcept {
  return {.verb = store::permits_verb::release, .owner = owner};
}

/// When a thread began to wait, and when it left the local queue, if any.
struct waits {
  boot_time began{};
  boot_time past_local_queue{};
};

/// The low bits of a public fence count the hand-overs inside the process, which the store does not
/// see: 12 bits below a number that grows with the microseconds.
inline constexpr unsigned local_fence_bits = 12;
inline constexpr std::uint64_t last_local_fence = (1u << local_fence_bits) - 1;
inline std::uint64_t public_fence(std::uint64_t stored) noexcept {
  if ((stored & store::fence_of_others) != 0) return stored & ~store::fence_of_others;
  return stored << local_fence_bits;
}

}  // namespace holdfast::engine
