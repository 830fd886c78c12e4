#pragma once

#include <cstdint>
#include <holdfast/store/kind.hpp>
#include <holdfast/store/led.hpp>
#include <holdfast/store/owner_id.hpp>
#include <string>
#include <string_view>
#include <vector>

/// The words that the engine, the kernels and the stores share. Times are microseconds: on the
/// store's own clock where a member ends in `_at`, a length where it ends in `_us`.
namespace holdfast::store {

/// The store's time when a step is applied. `now_at` judges leases and may start anywhere (SQLite
/// counts from boot); `wall_at` is since 1970, and only a floor for fences and a label for people.
struct moment {
  std::int64_t now_at = 0;
  std::int64_t wall_at = 0;
  bool wall_only_grows = false;  ///< nothing, a restart included, can set `wall_at` back
};

/// A mark in a fence: other programs than holdfast count the number in the other bits, too, and the
/// library shows that number unchanged. A grant with this mark is for one turn: threads do not pass
/// it on.
inline constexpr std::uint64_t fence_of_others = std::uint64_t{1} << 63;

// ---- permits: mutex, shared mutex, semaphore, election, barrier, condition_variable
enum class permits_verb : std::uint8_t {
  acquire,  ///< get `weight` permits, or queue if `wait`; by the holder: renew
  renew,    ///< lengthen the lease (or a waiter's queue entry); never gets what is not held
  release,  ///< leave: as holder or as waiter; harmless to repeat
  resize,   ///< change the weight of what is held: down always, up only if there is room
  evict,    ///< remove `owner`, or everyone if none is named: an operator's force-unlock
  inspect,  ///< change nothing, report
  notify,   ///< wake the first `weight` waiters of a condition_variable
};

struct permits_command {
  permits_verb verb = permits_verb::inspect;
  owner_id owner{};
  store::kind kind = kind::mutex;
  std::uint32_t capacity = 1;
  std::uint32_t weight = 1;
  std::int32_t priority = 0;  ///< greater comes first in the queue; equals in order of arrival
  bool wait = false;          ///< queue if it is not free now; if false, also leave the queue;
                              ///< renew, at a barrier: only query the state, and renew nothing
  std::int64_t lease_us = 0;  ///< how long it is held without renewal
  std::int64_t queue_lease_us = 0;  ///< how long a place lasts (capabilities::shared_queue_leases)
  bool outlives_session =
      false;              ///< not tied to its session's life; at a barrier: arrives for good
  bool in_order = false;  ///< of a fair_mutex: it queues at the store where a mutex would not
  bool lingers = false;   ///< notify when others want it; at a barrier: the last goes first
  owner_id replaces{};    ///< release this one first, in the same step
  owner_id secret{};      ///< of the released owner: for the next one (secret_proves)
  std::uint64_t fence_at_least = 0;  ///< acquire: a smaller fence becomes this one
  std::string_view peer{};  ///< the session's address: where notifications go, whose life counts
  std::string_view note{};  ///< who and why, for people
};

struct holder {
  owner_id owner{};
  std::uint32_t weight = 1;
  std::uint64_t fence = 0;
  std::int64_t expires_at = 0;
  std::int64_t since_wall_at = 0;
  std::string peer{};
  std::string note{};
  bool lingers = false;
  bool operator==(const holder&) const = default;
};

struct waiter {
  owner_id owner{};
  std::uint32_t weight = 1;
  std::int32_t priority = 0;
  std::int64_t lease_us = 0;
  std::int64_t expires_at = 0;
  std::int64_t since_wall_at = 0;
  std::string peer{};
  std::string note{};
  bool lingers = false;
  bool operator==(const waiter&) const = default;
};

/// Everything a store knows about one name of the permits family.
struct permits_record {
  store::kind kind = kind::mutex;
  std::uint32_t capacity = 0;  ///< 0: nobody has used the name yet, or all have left
  std::uint64_t last_fence = 0;
  std::vector<holder> holders{};
  std::vector<waiter> queue{};  ///< in the order in which they will be served
  std::vector<led> history{};   ///< of an election: the last who led, the present one too
  bool operator==(const permits_record&) const = default;
};

enum class permits_outcome : std::uint8_t {
  granted,  ///< held: `fence` and `expires_at` say how
  queued,   ///< queued, or arrived: ask again after `retry_after_us`, or when notified
  busy,     ///< not free now, and nothing was left behind
  done,     ///< released, resized, evicted, inspected
  absent,   ///< this owner neither holds nor waits; at a barrier: one of them has died
  kind_mismatch,
  capacity_mismatch,
};

/// A message to a session. "granted" goes to the next waiter, "wanted" to a holder that lingers,
/// "opened" to the waiters at a latch and to the participants of a barrier that broke. "departed"
/// says that a watched session has died (only from stores that see deaths).
enum class notification_kind : std::uint8_t { granted, wanted, opened, departed };
std::string_view to_string(notification_kind k) noexcept;
bool parse_notification_kind(std::string_view text, notification_kind& k) noexcept;

struct notification {
  notification_kind what = notification_kind::granted;
  std::string name{};
  owner_id owner{};
  std::uint64_t fence = 0;
  std::int64_t expires_at = 0;
  std::string peer{};  ///< the addressee; departed: the dead session
  /// Granted: the secret of the former holder, if it released and this waiter was next behind it.
  owner_id secret{};
  bool operator==(const notification&) const = default;
};

struct permits_reply {
  permits_outcome outcome = permits_outcome::done;
  bool changed = false;  ///< the family has to write the record
  std::uint64_t fence = 0;
  std::int64_t expires_at = 0;
  std::int64_t now_at = 0;          ///< the store's time of this reply
  std::int64_t wall_at = 0;         ///< … since 1970; 0 where fences do not follow it
  std::int64_t retry_after_us = 0;  ///< queued: ask again after this time, even if not notified
  std::uint32_t position = 0;       ///< queued: 1 is next; at a barrier, evict, notify: how many
  bool replaced = false;            ///< `replaces` was there until this step
  bool fresh = false;               ///< queued: it was not queued before
  bool repeated = false;            ///< an attempt before this one may have been carried out
  bool one_turn = false;            ///< granted: others wait, so no hand-over inside the process
  owner_id behind{};                ///< queued, passes_secrets, no priority: the owner before it
  /// Queued as the first: the peers that hold it. Inspect: those of `found` that have died.
  std::vector<std::string> blockers{};
  std::vector<notification> tell{};  ///< the notifications that the family sends
  permits_record found{};            ///< inspect, and the mismatches: what is there
};

// ---- countdown: latch

enum class countdown_verb : std::uint8_t { arrive, wait, leave, remove, inspect };

struct countdown_command {
  countdown_verb verb = countdown_verb::inspect;
  owner_id owner{};                 ///< of one arrival or one wait: repeating it counts once
  std::uint32_t count = 0;          ///< what the latch starts from
  std::uint32_t drop = 0;           ///< arrive: by how much
  std::int64_t queue_lease_us = 0;  ///< wait: how long its queue entry lasts; 0: no entry
  std::int64_t keep_us = 0;         ///< how long the record outlives its last use
  std::int64_t repeats_us = 0;      ///< arrive: how long after the first time it may be repeated
  std::string_view peer{};
  std::string_view note{};
};

struct arrival {
  owner_id owner{};
  std::int64_t forget_at = 0;
  bool operator==(const arrival&) const = default;
};

struct countdown_record {
  std::uint32_t count = 0;  ///< 0: nobody has used the name yet
  std::uint32_t remaining = 0;
  std::int64_t expires_at = 0;
  std::vector<arrival> arrivals{};  ///< the recent ones, so that a repeated arrival counts once
  std::vector<waiter> waiting{};
  bool operator==(const countdown_record&) const = default;
};

enum class countdown_outcome : std::uint8_t {
  open,      ///< the count is zero
  closed,    ///< it is not; a waiter is in the list
  too_many,  ///< the drop is greater than what remains: nothing changed
  done,
  kind_mismatch,
  capacity_mismatch,
};

struct countdown_reply {
  countdown_outcome outcome = countdown_outcome::done;
  bool changed = false;         ///< the family has to write the record
  std::uint32_t remaining = 0;  ///< after too_many of an unused name: the command's count
  std::int64_t now_at = 0;
  std::int64_t retry_after_us = 0;
  std::vector<notification> tell{};
  countdown_record found{};
  store::kind found_kind = kind::latch;
};

}  // namespace holdfast::store
