#pragma once

#include <holdfast/c/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct holdfast_lease holdfast_lease;

/// A queue of events: the outcomes of calls that do not block, and losses of leases. For event
/// loops, which poll its file descriptor. One queue is enough for a program.
typedef struct holdfast_queue holdfast_queue;

enum {
  HOLDFAST_ONE_TRY = 0,    ///< as a timeout: waits only for the store's answer
  HOLDFAST_NO_LIMIT = -1,  ///< as a timeout: waits without a limit (any negative number)
};

/// How a call waits. With NULL in its place, the call blocks without a limit.
typedef struct holdfast_wait {
  uint32_t size;  ///< sizeof(holdfast_wait)
  uint32_t unused;
  /// Nanoseconds, by CLOCK_BOOTTIME, or one of the two above. A wait with a deadline ends at most a
  /// tenth of a second after it, also while the store hangs (docs/guarantees.md has the
  /// exceptions); one try takes the store's own time.
  int64_t timeout_ns;
  holdfast_stop* stop;  ///< NULL: the wait cannot be cancelled
  /// NULL: the call blocks its thread. Otherwise the call returns at once, with 0 if the operation
  /// has begun, and writes to no other parameter; the outcome comes as one event of this queue.
  /// Closing the queue does not end operations: a lock that is granted later is released.
  holdfast_queue* queue;
  uint64_t tag;  ///< any number: it is copied into the event
} holdfast_wait;

enum holdfast_event_kind {
  HOLDFAST_DONE = 1,    ///< a call has ended: `code` says how
  HOLDFAST_LEASE_LOST,  ///< a lease that is watched was lost
};

typedef struct holdfast_event {
  uint32_t size;  ///< sizeof(holdfast_event)
  int32_t kind;   ///< holdfast_event_kind
  uint64_t tag;   ///< of the holdfast_wait, or of the watch
  int32_t code;   ///< holdfast_code of the call; HOLDFAST_LOST for a loss
  uint32_t unused;
  /// The lease that was granted, which the caller has to release, or the lease that was lost. For
  /// holdfast_barrier_arrive_within: the arrival, as a holdfast_arrival*.
  holdfast_lease* lease;
  uint64_t number;  ///< a further result of the call, if it has one
  int64_t wait_us;  ///< limiters: see holdfast_decision
} holdfast_event;

/// `fd` (may be NULL) is readable while there are events. Poll it; do not read, write or close it.
/// It is closed with the queue. Costs a file descriptor (HOLDFAST_OVERLOADED if there is none
/// left); no round trip.
int holdfast_queue_open(holdfast_queue** queue, int* fd, holdfast_error* why);

/// Takes the oldest event out. Waits for an event as long as `timeout_ns` says (see holdfast_wait),
/// and then returns HOLDFAST_TIMED_OUT; HOLDFAST_CANCELLED if the queue is closed meanwhile. If it
/// returns 0, it has written `event`, and `why` describes the outcome of that event's call, with
/// the code event->code. No round trip.
int holdfast_queue_next(holdfast_queue* queue, int64_t timeout_ns, holdfast_event* event,
                        holdfast_error* why);

#ifdef __cplusplus
}
#endif
