#pragma once

#include <holdfast/c/lease.h>
#include <holdfast/c/session.h>

#ifdef __cplusplus
extern "C" {
#endif

// Making one of these costs no round trip. Errors as for locks (holdfast/c/lock.h).

/// Waiters go on when the count has reached zero.
typedef struct holdfast_latch holdfast_latch;
/// Count from 1 to 1,000,000; all name the same. It is forgotten `keep_s` seconds after its last
/// use (0: a day).
int holdfast_latch_open(holdfast_session* session, const char* name, uint32_t count, int64_t keep_s,
                        holdfast_latch** latch, holdfast_error* why);
/// Less by n. `how` may be NULL; of it only queue and tag count. HOLDFAST_INVALID_ARGUMENT for 0 or
/// more than remains: nothing changed. One round trip.
int holdfast_latch_count_down(holdfast_latch* latch, uint32_t n, const holdfast_wait* how,
                              holdfast_error* why);
/// Until it is open: one try gives HOLDFAST_BUSY if it is not. One round trip if it is open.
int holdfast_latch_wait(holdfast_latch* latch, const holdfast_wait* how, holdfast_error* why);
/// What is left to count. One round trip.
int holdfast_latch_remaining(holdfast_latch* latch, uint32_t* count, holdfast_error* why);
/// Makes the name free; those that wait start over with a new one. One round trip.
int holdfast_latch_remove(holdfast_latch* latch, holdfast_error* why);

/// `count` participants wait for each other, again and again. It has no completion function.
typedef struct holdfast_barrier holdfast_barrier;
/// That one has arrived in a phase. Closed without a wait, the arrival stands.
typedef struct holdfast_arrival holdfast_arrival;
/// Count from 1 to 10,000; all name the same. lease_ms: how long the others wait for one that died
/// where nobody sees it (0: the session's).
int holdfast_barrier_open(holdfast_session* session, const char* name, uint32_t count,
                          int64_t lease_ms, holdfast_barrier** barrier, holdfast_error* why);
/// Does not wait for others. HOLDFAST_LOST, once, if a participant died in this phase. One round
/// trip.
int holdfast_barrier_arrive(holdfast_barrier* barrier, holdfast_arrival** arrival,
                            holdfast_error* why);
/// Until all have arrived; then the arrival is closed. HOLDFAST_LOST, and closed, if one died. Not
/// in time, or called off: the arrival stands, and can be waited for again. It blocks: a queue
/// gives HOLDFAST_UNSUPPORTED. About one round trip a second.
int holdfast_barrier_wait(holdfast_barrier* barrier, holdfast_arrival* arrival,
                          const holdfast_wait* how, holdfast_error* why);
/// Both in one. If it was called off or not in time, the arrival stands, and cannot be waited for.
int holdfast_barrier_arrive_and_wait(holdfast_barrier* barrier, const holdfast_wait* how,
                                     holdfast_error* why);
/// Arrives, and will not come again: each later phase needs one fewer. One round trip.
int holdfast_barrier_arrive_and_drop(holdfast_barrier* barrier, holdfast_error* why);

/// Releases a mutex, waits until any process notifies, and takes the mutex again.
typedef struct holdfast_condition holdfast_condition;
/// Its name is not that of the mutex.
int holdfast_condition_open(holdfast_session* session, const char* name,
                            holdfast_condition** condition, holdfast_error* why);
/// `lease` is that of a mutex. With 0 the mutex is held again by the same handle, with a new fence,
/// and `notified` (event.number) says whether there was a notification (1), or the time was over
/// (0). Look at what was waited for, and wait again: a wait may end without a reason. The timeout
/// is that of being notified; taking the mutex again has no limit. After any other code, also
/// HOLDFAST_CANCELLED, the mutex is not held and the lease is closed; after HOLDFAST_NOT_OWNER,
/// HOLDFAST_INVALID_ARGUMENT and HOLDFAST_UNSUPPORTED nothing has changed. One round trip to queue,
/// one to four a second, and those of the mutex.
int holdfast_condition_wait(holdfast_condition* condition, holdfast_lease* lease,
                            const holdfast_wait* how, uint32_t* notified, holdfast_error* why);
/// The first waiter goes on, or all do. `woken` (may be NULL) says how many. With or without the
/// mutex. One round trip.
int holdfast_condition_notify_one(holdfast_condition* condition, uint32_t* woken,
                                  holdfast_error* why);
int holdfast_condition_notify_all(holdfast_condition* condition, uint32_t* woken,
                                  holdfast_error* why);

#ifdef __cplusplus
}
#endif
