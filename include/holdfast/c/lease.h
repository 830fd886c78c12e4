#pragma once

#include <holdfast/c/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

enum holdfast_state {
  HOLDFAST_HELD = 1,
  HOLDFAST_SUSPECT,  ///< a renewal failed or hangs; the lock is still held
  HOLDFAST_GONE,     ///< lost: the lock is no longer certain to be held
};

typedef struct holdfast_lease_info {
  uint32_t size;         ///< sizeof(holdfast_lease_info)
  int32_t state;         ///< holdfast_state, judged by the clock at the moment of the call
  uint64_t fence;        ///< greater than that of every earlier holder; 0 where the store has none.
                         ///< Of a multi-lock: that of the first member (holdfast_lease_fences)
  int64_t remaining_ns;  ///< how long it is still certain to be held without renewal
  char name[512];        ///< as the store knows it; of a multi-lock or redlock: empty
  char short_id[16];     ///< names this acquisition in logs and for holdfast_force_release
} holdfast_lease_info;

/// State, fence and name of a lease, also of one that was lost. Pass the fence to the resource,
/// which refuses smaller ones. No round trip.
int holdfast_lease_info_of(holdfast_lease* lease, holdfast_lease_info* info, holdfast_error* why);

/// The fences of a multi-lock's members, in the order of the members; for other leases the one
/// fence. On entry `count` says how many fit into `fences`; on return, how many there are. If they
/// do not fit, none is written (HOLDFAST_INVALID_ARGUMENT). No round trip.
int holdfast_lease_fences(holdfast_lease* lease, uint64_t* fences, uint32_t* count,
                          holdfast_error* why);

/// HOLDFAST_LOST unless the lock is held. No round trip: cheap enough for inner loops.
int holdfast_lease_check(holdfast_lease* lease, holdfast_error* why);

/// Renews the lease now, with the length `lease_ms` from now on, or with its old length (0).
/// Renewal is automatic: call this only to change the length, or for a lease without renewal. One
/// round trip for each name. HOLDFAST_LOST if the lease is lost; HOLDFAST_UNAVAILABLE if the store
/// is away: then the old lease still runs, or the new one if it is shorter.
/// HOLDFAST_INVALID_ARGUMENT for a length outside 100 ms to 31 days. HOLDFAST_UNSUPPORTED for a
/// redlock.
int holdfast_lease_extend(holdfast_lease* lease, int64_t lease_ms, holdfast_error* why);

/// When the lease is lost, the queue gets one event, HOLDFAST_LEASE_LOST with this tag: before the
/// store can give the lock to another holder, even if the store is away (docs/guarantees.md has the
/// exceptions). If the lease is already lost, the event comes at once. A wait for a condition that
/// fails, and so closes the lease, makes the event, too. A release and holdfast_close make none. A
/// lease may have several watches. No round trip.
int holdfast_lease_watch(holdfast_lease* lease, holdfast_queue* queue, uint64_t tag,
                         holdfast_error* why);

/// Releases the lock, and closes the handle, also with an error. HOLDFAST_LOST if the lease had
/// already ended (no other holder is affected). HOLDFAST_UNAVAILABLE if the store could not be
/// reached; then the lease ends by itself. A second release returns HOLDFAST_NOT_OWNER. So
/// does a release while a wait for a condition uses the lease; then nothing has changed, and the
/// handle stays open. `how` may be NULL; only its queue and tag are used. If a call of another
/// thread uses the lease, the release waits until that call has ended; with a queue this function
/// still returns at once. One round trip; for a redlock one to each node; for a multi-lock as
/// docs/multi_lock.md says.
int holdfast_release(holdfast_lease* lease, const holdfast_wait* how, holdfast_error* why);

#ifdef __cplusplus
}
#endif
