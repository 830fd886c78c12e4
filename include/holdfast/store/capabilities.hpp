#pragma once

#include <holdfast/cpp20.hpp>

#include <cstdint>
#include <string_view>

namespace holdfast::store {

/// What a store promises. The primitive × store matrix in docs/matrix.md is made from it. A
/// primitive that needs something that the store lacks throws errc::unsupported at construction.
struct capabilities {
  bool mutex = true;         ///< exclusive locks (mutex, recursive_mutex)
  bool fair = true;          ///< a queue in order of arrival across processes
  bool shared = true;        ///< shared_mutex
  bool semaphore = true;     ///< weighted permits
  bool unit_permits = true;  ///< permits one by one (counting_semaphore)
  bool latch = true;
  bool preferences =
      true;  ///< the queue can have another order: readers first, writers first, priorities
  bool expiring = true;       ///< permits with ids, which outlive the session that got them
  bool election = false;      ///< an exclusive lock of that kind, with a note that all can read
  bool barrier = false;       ///< and condition_variable; every state store has both by its family
  bool rate_limiter = false;  ///< session_store::rate; the family gives it to every state store
  bool finds_deadlocks = false;  ///< holders are shown with lease and note, on one clock
  bool learns_fences = false;    ///< obeys permits_command::fence_at_least, or has no fences
  bool fences = true;            ///< fences grow (docs/guarantees.md lists the exceptions)
  bool notifications = true;     ///< waiters are notified; if false they poll, at a cost
  bool tells_holders =
      true;  ///< a holder is notified that others want its lock (with notifications)
  bool beside_others = false;  ///< other programs than holdfast use the same locks
  /// The store passes permits_command::secret on in the step that grants, and sets
  /// permits_reply::behind. Its inbox delivers the notifications of one name in the order of their
  /// steps, or reports a gap, or leaves the secret out.
  bool secret_proves = false;
  std::int64_t claim_us = 500'000;   ///< how long a notified waiter has to claim its grant
  bool shared_queue_leases = false;  ///< one poll renews every queue entry of the session
  bool lists_waiters = true;         ///< waiters can be shown
  bool sees_death = false;  ///< a holder that died on this machine is seen before its lease ends
  bool survives_failover = true;  ///< no second holder when the store fails over
  bool several_processes = true;
  std::uint32_t try_takes_ms = 0;  ///< the longest time of a try if nothing delays it; 0: unknown
  std::uint32_t max_name_bytes = 255;
  std::uint32_t lease_step_ms = 1;             ///< a lease is a multiple of it
  std::uint32_t max_lease_s = 31 * 24 * 3600;  ///< and not longer than this
  /// The largest capacity of a counting_semaphore where each permit is a slot of its own
  /// (unit_permits without semaphore).
  std::uint32_t max_slots = 4096;
  std::string_view refusal{};  ///< why it lacks what it lacks, for the message; may be empty
};

}  // namespace holdfast::store
