#pragma once

#include <holdfast/c/lease.h>
#include <holdfast/c/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A mutex, shared mutex, semaphore, election, multi-lock or redlock. A lock is held by a lease
/// handle, not by a thread. Making a lock handle costs no round trip.
typedef struct holdfast_lock holdfast_lock;

typedef struct holdfast_lock_options {
  uint32_t size;                ///< sizeof(holdfast_lock_options)
  uint8_t no_renewal;           ///< 1: the lock ends by itself when the lease is over
  uint8_t unconfirmed_release;  ///< 1: holdfast_close of a lease does not wait for the store
  uint8_t unused[2];
  int64_t lease_ms;       ///< 0: the session's. From 100 ms to 31 days
  int64_t max_hold_ms;    ///< the longest time for which one hold lasts. 0: no limit
  int64_t local_time_us;  ///< how long threads of this process may pass a mutex on without asking
                          ///< the store. 0: 10,000; negative: never
  int64_t linger_us;      ///< how long an idle mutex may stay with this process. 0: not at all
  uint64_t max_waiters;   ///< how many threads may wait behind another one; one more gets
                          ///< HOLDFAST_OVERLOADED. 0: no limit
  const char* reason;     ///< for people, shown by `holdfast list`. NULL: none
} holdfast_lock_options;

/// Mutual exclusion by name, between all programs that open the same store. `options` may be NULL,
/// here and below. Errors of all of these: HOLDFAST_INVALID_NAME, HOLDFAST_INVALID_ARGUMENT, and
/// HOLDFAST_UNSUPPORTED if the store lacks the lock or an option (docs/matrix.md).
int holdfast_mutex(holdfast_session* session, const char* name,
                   const holdfast_lock_options* options, holdfast_lock** lock, holdfast_error* why);
/// As holdfast_mutex, on the same names, but strictly in order of arrival across processes.
int holdfast_fair_mutex(holdfast_session* session, const char* name,
                        const holdfast_lock_options* options, holdfast_lock** lock,
                        holdfast_error* why);

enum holdfast_preference {
  HOLDFAST_FIFO = 0,       ///< order of arrival
  HOLDFAST_READERS_FIRST,  ///< readers pass waiting writers
  HOLDFAST_WRITERS_FIRST,  ///< writers pass waiting readers
};
/// Many readers or one writer. `preference` is a holdfast_preference. Errors as holdfast_mutex.
int holdfast_shared_mutex(holdfast_session* session, const char* name, int preference,
                          const holdfast_lock_options* options, holdfast_lock** lock,
                          holdfast_error* why);

/// `capacity` permits, from 1 to 2^30. All programs state the same number; otherwise an acquisition
/// returns HOLDFAST_CAPACITY_MISMATCH. Errors as holdfast_mutex.
int holdfast_semaphore(holdfast_session* session, const char* name, uint32_t capacity,
                       const holdfast_lock_options* options, holdfast_lock** lock,
                       holdfast_error* why);
/// The number of free permits at this moment. One round trip. For other locks
/// HOLDFAST_INVALID_ARGUMENT.
int holdfast_semaphore_available(holdfast_lock* semaphore, uint32_t* permits, holdfast_error* why);

typedef struct holdfast_election_options {
  uint32_t size;     ///< sizeof(holdfast_election_options)
  int32_t priority;  ///< any; the waiting candidate with the greatest leads next
  int64_t lease_ms;  ///< 0: the session's
  const char* note;  ///< public, for example an address; at most 200 bytes. NULL: none
} holdfast_election_options;
typedef struct holdfast_leader {
  uint32_t size;      ///< sizeof(holdfast_leader)
  uint32_t pid;       ///< here and below: zero or empty if not known
  uint64_t term;      ///< greater than that of every leader before; 0: nobody leads
  uint8_t after_gap;  ///< 1: others may have led since the previous leader
  uint8_t unused[7];
  char note[256];
  char host[256];
  char program[256];
} holdfast_leader;
/// One of many candidates leads. To campaign, acquire the lock; the lease is the leadership, and
/// its fence is the term. Errors as holdfast_mutex.
int holdfast_election(holdfast_session* session, const char* name,
                      const holdfast_election_options* options, holdfast_lock** lock,
                      holdfast_error* why);
/// The present leader. One round trip. For other locks HOLDFAST_INVALID_ARGUMENT.
int holdfast_election_leader(holdfast_lock* election, holdfast_leader* leader, holdfast_error* why);
/// The leaders of an election, one after the other, as holdfast::leaders. For one thread at a time.
typedef struct holdfast_leaders holdfast_leaders;
/// Makes a handle for holdfast_leaders_next. No round trip. For other locks
/// HOLDFAST_INVALID_ARGUMENT.
int holdfast_election_observe(holdfast_lock* election, holdfast_leaders** leaders,
                              holdfast_error* why);
/// The next leader after the one that was returned last. With a queue, the event contains the term
/// (event.number), and holdfast_leaders_found() returns the rest; closing the handle ends the wait
/// with HOLDFAST_CANCELLED. HOLDFAST_TIMED_OUT if no leader comes in time. Polls about twice a
/// second, one round trip each.
int holdfast_leaders_next(holdfast_leaders* leaders, const holdfast_wait* how,
                          holdfast_leader* leader, holdfast_error* why);
/// The leader that holdfast_leaders_next() found last, with or without a queue. The term is 0 if it
/// has found none. No round trip.
int holdfast_leaders_found(holdfast_leaders* leaders, holdfast_leader* leader, holdfast_error* why);

typedef struct holdfast_member {
  holdfast_lock* lock;  ///< a mutex, shared mutex or semaphore
  uint32_t shared;      ///< 1: as a reader (shared mutex)
  uint32_t permits;     ///< how many (semaphore); 0: one
} holdfast_member;
/// All of several names, on one session or several, or none. The members may be closed afterwards.
/// Closing this lock ends its waits with a queue with HOLDFAST_CANCELLED.
/// HOLDFAST_INVALID_ARGUMENT if there is no member, if a member is another kind of lock or is there
/// twice, if it has fewer permits, or if lease_ms, no_renewal or max_hold_ms differ.
/// HOLDFAST_UNSUPPORTED for `shared` of a lock that is no shared mutex, and for `permits` of one
/// that is no semaphore. If two sessions turn out to have the same store, the acquisition returns
/// HOLDFAST_INVALID_ARGUMENT.
int holdfast_multi_lock(const holdfast_member* members, uint32_t count, holdfast_lock** lock,
                        holdfast_error* why);

typedef struct holdfast_redlock_options {
  uint32_t size;  ///< sizeof(holdfast_redlock_options)
  uint32_t unused;
  int64_t lease_ms;         ///< 0: that of the first session
  int64_t node_timeout_ms;  ///< how long a node may take to answer. 0: 200
  int64_t trust_after_ms;   ///< no vote for this long after a node's start. 0: off
  const char* reason;       ///< for people. NULL: none
} holdfast_redlock_options;
/// A lock on a majority of independent stores. Closing it ends its waits with a queue with
/// HOLDFAST_CANCELLED. Errors as holdfast_mutex. The first acquisition returns
/// HOLDFAST_INVALID_ARGUMENT if two sessions have the same store.
int holdfast_redlock(holdfast_session* const* nodes, uint32_t count, const char* name,
                     const holdfast_redlock_options* options, holdfast_lock** lock,
                     holdfast_error* why);

/// Acquires the lock exclusively, or one permit. `how` may be NULL: then it waits without a limit.
/// HOLDFAST_BUSY (one try), HOLDFAST_TIMED_OUT, HOLDFAST_CANCELLED, HOLDFAST_UNAVAILABLE (the store
/// is away), HOLDFAST_KIND_MISMATCH (the name is in use as something else). One round trip if it is
/// free; docs/mutex.md and the pages of the others say what waiting costs.
int holdfast_acquire(holdfast_lock* lock, const holdfast_wait* how, holdfast_lease** lease,
                     holdfast_error* why);
/// Acquires a shared mutex as a reader. For other locks HOLDFAST_UNSUPPORTED. Errors and cost as
/// holdfast_acquire.
int holdfast_acquire_shared(holdfast_lock* lock, const holdfast_wait* how, holdfast_lease** lease,
                            holdfast_error* why);
/// Acquires that many permits of a semaphore, or none. For 0, and for more than its capacity,
/// HOLDFAST_INVALID_ARGUMENT. For other locks HOLDFAST_UNSUPPORTED. Other errors and cost as
/// holdfast_acquire.
int holdfast_acquire_permits(holdfast_lock* lock, uint32_t permits, const holdfast_wait* how,
                             holdfast_lease** lease, holdfast_error* why);

/// A writer's lease becomes a reader's, with no other writer in between. The fence stays the same.
/// One round trip; on ZooKeeper and etcd two. HOLDFAST_LOST if the lease is lost;
/// HOLDFAST_UNAVAILABLE if the store is away: then it is still a writer's. HOLDFAST_NOT_OWNER if
/// the lease was released, or is of another lock. For a lock that is no shared mutex
/// HOLDFAST_INVALID_ARGUMENT.
int holdfast_downgrade(holdfast_lock* lock, holdfast_lease* lease, holdfast_error* why);
/// A reader's lease becomes a writer's, with a new fence, if there is no other reader; otherwise
/// the call returns HOLDFAST_BUSY at once, and the lease stays a reader's. Other errors and cost as
/// holdfast_downgrade; after HOLDFAST_UNAVAILABLE it is still a reader's.
int holdfast_upgrade(holdfast_lock* lock, holdfast_lease* lease, holdfast_error* why);

#ifdef __cplusplus
}
#endif
