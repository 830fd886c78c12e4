#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// For every function of this interface: any thread may call it, also while others use the same
// handles (holdfast_leaders: one thread at a time). A NULL or closed handle, a handle of another
// type, a wrong `size` and a required pointer that is NULL give HOLDFAST_INVALID_ARGUMENT; where a
// lease is expected, any other handle that is not NULL gives HOLDFAST_NOT_OWNER. A field that this
// library does not know, and that is not 0, gives HOLDFAST_UNSUPPORTED. A handle of the parent
// gives HOLDFAST_FORKED in a forked child. Without memory a call gives HOLDFAST_OVERLOADED.
// A call that costs a round trip can also fail as the store does: HOLDFAST_UNAVAILABLE,
// HOLDFAST_OVERLOADED, HOLDFAST_KIND_MISMATCH, and the codes from HOLDFAST_FOREIGN_DATA to
// HOLDFAST_NOT_PERMITTED. Comments name what else a function returns. The end of a name has the
// unit: _ns, _us, _ms, _s.

/// The result of a call. The numbers are those of holdfast::errc and never change.
enum holdfast_code {
  HOLDFAST_OK = 0,
  HOLDFAST_BUSY = 1,       ///< another holder has the lock (a single try)
  HOLDFAST_TIMED_OUT,      ///< the deadline passed while waiting
  HOLDFAST_CANCELLED,      ///< the wait was stopped (holdfast_stop), or its session was closed
  HOLDFAST_LOST,           ///< the lock is no longer certain to be held
  HOLDFAST_NOT_OWNER,      ///< a lease that is not held: released before, or never one
  HOLDFAST_UNAVAILABLE,    ///< the store cannot be reached, or does not answer
  HOLDFAST_OVERLOADED,     ///< too many waiters or buckets; no memory or file descriptor left
  HOLDFAST_DEADLOCK,       ///< the wait would never end. No function of this interface returns it
  HOLDFAST_KIND_MISMATCH,  ///< the name is in use as another kind of primitive
  HOLDFAST_CAPACITY_MISMATCH,  ///< the name is in use with another capacity or count
  HOLDFAST_UNSUPPORTED,        ///< this store, or this kind of lock, does not offer it
  HOLDFAST_INVALID_NAME,       ///< empty, too long, control characters, not UTF-8
  HOLDFAST_INVALID_ARGUMENT,   ///< a bad handle, size, pointer, duration or option
  HOLDFAST_FOREIGN_DATA,       ///< the record, table or file was not written by holdfast
  HOLDFAST_NEWER_FORMAT,       ///< written by a newer holdfast
  HOLDFAST_CORRUPT,            ///< damaged data
  HOLDFAST_READ_ONLY,          ///< the store refuses writes
  HOLDFAST_NO_SPACE,           ///< the store is full
  HOLDFAST_NOT_PERMITTED,      ///< credentials or rights are missing
  HOLDFAST_FORKED,             ///< used in a child process after fork()
  HOLDFAST_INTERNAL,           ///< a defect in holdfast
};

/// Why a call failed. The caller owns it and sets `size`; each call fills in the rest.
typedef struct holdfast_error {
  uint32_t size;      ///< sizeof(holdfast_error)
  int32_t code;       ///< holdfast_code, as the call returned it
  uint8_t retryable;  ///< 1: the same call may succeed later
  /// 1: the reply was lost, so the call may have been carried out. Repeating it is safe, except for
  /// a count_down, a limiter's take, a notification, and the very last arrive_and_drop of a
  /// barrier.
  uint8_t outcome_unknown;
  uint8_t lease_gone;  ///< 1: the lease of this call no longer protects anything
  uint8_t unused[5];
  // In these four, a longer text is cut at a character. Empty: does not apply.
  char operation[64];
  char name[512];      ///< of the lock or other primitive
  char store[1024];    ///< the URL of the store, never with a password
  char message[4096];  ///< the whole error, for people
} holdfast_error;

// These three cannot fail, and cost no round trip.

/// The version of this interface, which is also in the library's name (libholdfast-c.so.0). While
/// it stays the same, functions and fields are only added.
uint32_t holdfast_abi(void);
/// The version of holdfast, as "0.1.0".
const char* holdfast_version(void);
/// Describes a code; "unknown error" for other numbers.
const char* holdfast_words(int code);

/// Closes a handle of any type. The object behind it ends when the last call that uses it has
/// returned. A lease is released, and failures are not reported (one round trip). If a call of
/// another thread asks the store for that lease (holdfast_lease_extend, holdfast_downgrade), that
/// call releases it at its end. A session ends
/// when it and everything that was made with it are closed: then calls with a queue that still wait
/// on it end with HOLDFAST_CANCELLED. The end of a session, of a barrier that has participants and
/// of a lock that lingers costs a round trip, too; if the store does not answer, its time-outs.
/// HOLDFAST_INVALID_ARGUMENT if the handle is NULL or already closed; then nothing happens.
int holdfast_close(const void* handle, holdfast_error* why);
/// Closes every handle of this process. Call it when the program ends, so that locks are released
/// before their leases end. First it closes the queues, cancels the waits of other threads
/// (HOLDFAST_CANCELLED) and those with a queue, and waits up to 10 s for all these calls to end,
/// also for releases: those with a queue, and those of other threads, which may be in
/// holdfast_close. Then it needs one round trip for each lease. In a forked child it closes no
/// handle of the parent.
void holdfast_close_all(void);

/// Cancels waits, from any thread.
typedef struct holdfast_stop holdfast_stop;
/// No round trip.
int holdfast_stop_open(holdfast_stop** stop, holdfast_error* why);
/// Each wait that uses this handle ends soon with HOLDFAST_CANCELLED, also waits that begin later.
/// No round trip.
int holdfast_stop_request(holdfast_stop* stop, holdfast_error* why);

#ifdef __cplusplus
}
#endif
