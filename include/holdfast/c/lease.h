#pragma once

#include <holdfast/c/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

enum holdfast_state {
  HOLDFAST_HELD = 1,
  HOLDFAST_SUSPECT,  ///< renewals fail, or do not return; it is still held
  HOLDFAST_GONE,     ///< lost: it protects nothing any more
};

typedef struct holdfast_lease_info {
  uint32_t size;         ///< sizeof(holdfast_lease_info)
  int32_t state;         ///< holdfast_state, judged by the clock at the moment of the call
  uint64_t fence;        ///< greater than that of every earlier holder; 0 where the store has none
  int64_t remaining_ns;  ///< how long it is held for certain without another renewal
  char name[512];        ///< as the store knows it; of a multi-lock or redlock: empty
  char short_id[16];     ///< names this acquisition in logs and for holdfast_force_release
} holdfast_lease_info;

/// What is known of a lease: pass its fence to what the lock protects, which refuses smaller ones.
/// No round trip.
int holdfast_lease_info_of(holdfast_lease* lease, holdfast_lease_info* info, holdfast_error* why);

/// The fences of a multi-lock's members, in the order in which they were given; else the one fence.
/// `count` says how many fit into `fences`, and receives how many there are; all or none are
/// written (HOLDFAST_INVALID_ARGUMENT). No round trip.
int holdfast_lease_fences(holdfast_lease* lease, uint64_t* fences, uint32_t* count,
                          holdfast_error* why);

/// HOLDFAST_LOST unless it is held. No round trip: cheap enough for inner loops.
int holdfast_lease_check(holdfast_lease* lease, holdfast_error* why);

/// Renews now: for `lease_ms` from now on, or for the length that it was taken with (0). Renewal is
/// automatic; this is for another length, and for leases without renewal. One round trip for each
/// name. HOLDFAST_LOST if it is gone; HOLDFAST_UNAVAILABLE if the store is away: the old lease
/// still runs. HOLDFAST_UNSUPPORTED for a redlock.
int holdfast_lease_extend(holdfast_lease* lease, int64_t lease_ms, holdfast_error* why);

/// One event, HOLDFAST_LEASE_LOST with this tag, when the lease is lost: before the store can give
/// the lock to somebody else, also if the store is away. At once if it is lost already. No event
/// for a release. Several watches are fine. No round trip.
int holdfast_lease_watch(holdfast_lease* lease, holdfast_queue* queue, uint64_t tag,
                         holdfast_error* why);

/// Gives it back; the handle is closed whatever the result. HOLDFAST_LOST if it had ended before
/// (nothing of another holder is touched); HOLDFAST_UNAVAILABLE if the store could not be told, and
/// it ends by itself. A second release gives HOLDFAST_NOT_OWNER. `how` may be NULL; of it only
/// queue and tag count, and a redlock has no queue (HOLDFAST_UNSUPPORTED; the handle stays). Where
/// another thread's call uses the lease it begins when that is over; with a queue it returns at
/// once all the same. One round trip; for a redlock one to each node.
int holdfast_release(holdfast_lease* lease, const holdfast_wait* how, holdfast_error* why);

#ifdef __cplusplus
}
#endif
