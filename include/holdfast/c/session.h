#pragma once

#include <holdfast/c/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The connections to a store, and the threads that renew leases there.
typedef struct holdfast_session holdfast_session;

typedef struct holdfast_session_options {
  uint32_t size;           ///< sizeof(holdfast_session_options)
  uint8_t lock_order;      ///< 0; else HOLDFAST_UNSUPPORTED: no lock here belongs to a thread
  uint8_t find_deadlocks;  ///< 0; else HOLDFAST_UNSUPPORTED, as with lock_order
  uint8_t unused[2];
  int64_t lease_ms;          ///< how long a lock outlives a crash. 0: 30,000
  int64_t store_timeout_ms;  ///< how long open and calls without a limit retry. 0: 10,000
  const char* name_prefix;   ///< put before every name. NULL: none
} holdfast_session_options;

/// What the store knows about one name at this moment.
typedef struct holdfast_name_info {
  uint32_t size;       ///< sizeof(holdfast_name_info)
  uint32_t capacity;   ///< permits in all; a latch's starting count
  uint32_t remaining;  ///< permits free; a latch's count now
  uint32_t holders;    ///< number of holders
  uint32_t waiters;    ///< number of queued requests
  uint32_t unused;
  uint64_t last_fence;
  char kind[32];    ///< "mutex", "shared_mutex", "semaphore", …; empty: not in use
  char holder[16];  ///< the short id of the first holder, for holdfast_force_release; may be empty
} holdfast_name_info;

/// Opens the store that the URL names: `memory:`, `sqlite:PATH`, `redis:…` and the others of
/// docs/stores; `file:PATH` where the URL is the first line of a file, for one with a password.
/// `options` may be NULL. Waits until the store has answered. A store that is away is tried again
/// for store_timeout_ms; then the call returns HOLDFAST_UNAVAILABLE. Returns
/// HOLDFAST_INVALID_ARGUMENT for a URL that it does not understand, HOLDFAST_UNSUPPORTED for a
/// store that was not built in and for an option that has to be 0, and the errors that the store's
/// page lists. No text shows a password.
int holdfast_open(const char* url, const holdfast_session_options* options,
                  holdfast_session** session, holdfast_error* why);

/// Writes the URL without passwords, at most `room` bytes including the zero byte at the end.
/// HOLDFAST_INVALID_ARGUMENT if the whole URL does not fit. A byte that is not UTF-8 becomes
/// U+FFFD, which takes three bytes. No round trip.
int holdfast_session_url(holdfast_session* session, char* text, uint64_t room, holdfast_error* why);

/// The holders of a name, and how many requests are queued. HOLDFAST_INVALID_NAME. One round trip;
/// two for a latch and a free name; on memcached up to eleven.
int holdfast_show(holdfast_session* session, const char* name, holdfast_name_info* info,
                  holdfast_error* why);

/// Takes the lock away from its holders (NULL), or from the one with this short id. An empty short
/// id is HOLDFAST_INVALID_ARGUMENT, because holdfast_show returns it for a holder that has none.
/// The former holder learns of it at its next renewal; until then the fence protects the resource.
/// `removed` (may be NULL) receives how many holders were removed. As many round trips as
/// holdfast_show, and one for each holder (on memcached as many as holdfast_show, and one).
int holdfast_force_release(holdfast_session* session, const char* name, const char* short_id,
                           uint64_t* removed, holdfast_error* why);

#ifdef __cplusplus
}
#endif
