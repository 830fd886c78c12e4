#pragma once

#include <holdfast/c/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct holdfast_lease holdfast_lease;

/// Where calls that do not block leave their outcome, and leases the news of their loss: for event
/// loops, which poll its file descriptor. One is enough for a program.
typedef struct holdfast_queue holdfast_queue;

enum {
  HOLDFAST_ONE_TRY = 0,    ///< as a timeout: waits for nothing but the store's answer
  HOLDFAST_NO_LIMIT = -1,  ///< as a timeout: until it is there (any negative number)
};

/// How a call waits. NULL in its place: it blocks, without a limit.
typedef struct holdfast_wait {
  uint32_t size;  ///< sizeof(holdfast_wait)
  uint32_t unused;
  /// Nanoseconds, by CLOCK_BOOTTIME, or one of the two above. A wait with a deadline ends at most a
  /// tenth of a second after it, also while the store hangs (docs/guarantees.md has the
  /// exceptions); one try takes the store's own time.
  int64_t timeout_ns;
  holdfast_stop* stop;  ///< NULL: it cannot be called off
  /// NULL: the call blocks its thread. Else it returns at once, with 0 if it has begun, and writes
  /// to no other parameter; the outcome comes as one event of this queue. Closing the queue ends
  /// nothing that was begun: what is granted later is released.
  holdfast_queue* queue;
  uint64_t tag;  ///< any number: stands in the event
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
  holdfast_lease* lease;  ///< what was granted, now the caller's to release; or what was lost
  uint64_t number;        ///< what else the call gives: its page says what
  int64_t wait_us;        ///< limiters: see holdfast_decision
} holdfast_event;

/// `fd` (may be NULL) is readable while there are events. Poll it; do not read, write or close it.
/// It is closed with the queue. Costs a file descriptor; no round trip.
int holdfast_queue_open(holdfast_queue** queue, int* fd, holdfast_error* why);

/// The oldest event. Waits for one as long as `timeout_ns` says (see holdfast_wait), and then gives
/// HOLDFAST_TIMED_OUT. With 0, `event` is written, and `why` is about the call that the event is
/// of: its code is event->code. No round trip.
int holdfast_queue_next(holdfast_queue* queue, int64_t timeout_ns, holdfast_event* event,
                        holdfast_error* why);

#ifdef __cplusplus
}
#endif
