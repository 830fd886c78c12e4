#pragma once

#include <holdfast/c/lease.h>
#include <holdfast/c/session.h>

#ifdef __cplusplus
extern "C" {
#endif

// Making one of these costs no round trip. Errors as for locks (holdfast/c/lock.h).

/// Waiters continue when the count has reached zero.
typedef struct holdfast_latch holdfast_latch;
/// Count from 1 to 1,000,000; all programs state the same. The latch is forgotten `keep_s` seconds
/// after its last use (0: a day).
int holdfast_latch_open(holdfast_session* session, const char* name, uint32_t count, int64_t keep_s,
                        holdfast_latch** latch, holdfast_error* why);
/// Counts down by n. `how` may be NULL; only its queue and tag are used. HOLDFAST_INVALID_ARGUMENT
/// for 0, or for more than remains; then nothing has changed. One round trip; on ZooKeeper and etcd
/// two or more.
int holdfast_latch_count_down(holdfast_latch* latch, uint32_t n, const holdfast_wait* how,
                              holdfast_error* why);
/// Waits until the latch is open. One try returns HOLDFAST_BUSY if it is closed. One round trip if
/// it is open, and about one a second while it is closed (latch::wait() in holdfast/latch.hpp).
int holdfast_latch_wait(holdfast_latch* latch, const holdfast_wait* how, holdfast_error* why);
/// Writes the present count. Errors as above. One round trip; on ZooKeeper and etcd two if there is
/// no latch.
int holdfast_latch_remaining(holdfast_latch* latch, uint32_t* count, holdfast_error* why);
/// Removes the latch and frees its name; waiters start over with a new latch. Errors and cost as
/// holdfast_latch_remaining.
int holdfast_latch_remove(holdfast_latch* latch, holdfast_error* why);

/// `count` participants wait for each other, in one phase after the other. It has no completion
/// function. Open one handle for each participant. Threads that share a handle are one participant
/// each; tasks that share a thread and a handle are one participant together. Calls that still wait
/// over a queue end with HOLDFAST_CANCELLED when the handle is closed.
typedef struct holdfast_barrier holdfast_barrier;
/// The arrival of one participant in a phase. If it is closed without a wait, it still counts.
typedef struct holdfast_arrival holdfast_arrival;
/// Count from 1 to 10,000; all programs state the same. lease_ms: how long the others wait for a
/// participant whose death the store cannot see (0: the session's).
int holdfast_barrier_open(holdfast_session* session, const char* name, uint32_t count,
                          int64_t lease_ms, holdfast_barrier** barrier, holdfast_error* why);
/// Arrives. If this thread's last arrival at this handle was closed before the end of its phase, it
/// first waits, without a limit, for that end; otherwise it does not wait for others. While that
/// arrival is open, this is the arrival of another participant. HOLDFAST_LOST, once, if a
/// participant died in this phase. One round trip.
int holdfast_barrier_arrive(holdfast_barrier* barrier, holdfast_arrival** arrival,
                            holdfast_error* why);
/// The same with a limit, a stop and a queue; event.lease is the arrival then, to be cast. If the
/// time is over (HOLDFAST_TIMED_OUT) or the call was cancelled (HOLDFAST_CANCELLED), the arrival
/// may count nevertheless: arrive again. Other errors and cost as holdfast_barrier_arrive.
int holdfast_barrier_arrive_within(holdfast_barrier* barrier, const holdfast_wait* how,
                                   holdfast_arrival** arrival, holdfast_error* why);
/// Waits until all have arrived, and closes the arrival. HOLDFAST_LOST if a participant died; the
/// arrival is closed then, too. If the time is over or the wait was cancelled, the arrival still
/// counts, and can be waited for again. One to four round trips a second; up to 20 where the store
/// does not notify.
int holdfast_barrier_wait(holdfast_barrier* barrier, holdfast_arrival* arrival,
                          const holdfast_wait* how, holdfast_error* why);
/// Arrives and waits. If the time is over or the wait was cancelled, the arrival cannot be waited
/// for again. It counts if the store had answered; otherwise it may count: the next arrival of this
/// thread first waits for the end of a phase in which it counts. Errors and cost as those of
/// arriving and of holdfast_barrier_wait.
int holdfast_barrier_arrive_and_wait(holdfast_barrier* barrier, const holdfast_wait* how,
                                     holdfast_error* why);
/// Arrives as above, and drops out: each later phase needs one participant fewer. Errors as
/// holdfast_barrier_arrive. One round trip.
int holdfast_barrier_arrive_and_drop(holdfast_barrier* barrier, holdfast_error* why);
/// The same with a limit, a stop and a queue. If the time is over or the call was cancelled, drop
/// out again, because it may not have. Errors and cost as holdfast_barrier_arrive_within.
int holdfast_barrier_arrive_and_drop_within(holdfast_barrier* barrier, const holdfast_wait* how,
                                            holdfast_error* why);

/// Releases a mutex, waits until any process notifies, and acquires the mutex again.
typedef struct holdfast_condition holdfast_condition;
/// Its name must differ from that of the mutex.
int holdfast_condition_open(holdfast_session* session, const char* name,
                            holdfast_condition** condition, holdfast_error* why);
/// `lease` is that of a mutex. With 0 the mutex is held again by the same handle, with a new fence,
/// and `notified` (event.number) says whether there was a notification (1), or the time was over
/// (0). Check your condition, and wait again if it does not hold, because a wait may end without a
/// notification. The timeout limits the wait for a notification; acquiring the mutex again has no
/// limit. After HOLDFAST_NOT_OWNER, HOLDFAST_INVALID_ARGUMENT and HOLDFAST_UNSUPPORTED nothing has
/// changed. After any other code, also HOLDFAST_CANCELLED, the mutex is not held and the lease is
/// closed. If another thread closes the lease, the wait continues, and ends with
/// HOLDFAST_CANCELLED. One round trip to queue, one to four a second (up to 20 where the store does
/// not notify), and those of the mutex.
int holdfast_condition_wait(holdfast_condition* condition, holdfast_lease* lease,
                            const holdfast_wait* how, uint32_t* notified, holdfast_error* why);
/// Wakes the first waiter. `woken` (may be NULL) receives how many were woken. You may hold the
/// mutex or not. One round trip.
int holdfast_condition_notify_one(holdfast_condition* condition, uint32_t* woken,
                                  holdfast_error* why);
/// The same for all waiters.
int holdfast_condition_notify_all(holdfast_condition* condition, uint32_t* woken,
                                  holdfast_error* why);

#ifdef __cplusplus
}
#endif
