#pragma once

/// holdfast for C, and for languages that call C. Link libholdfast-c.so.0 (pkg-config holdfast-c).
///
///     holdfast_error why = {.size = sizeof why};
///     holdfast_session *store = NULL;
///     holdfast_lock *order = NULL;
///     holdfast_lease *held = NULL;
///     if (holdfast_open("sqlite:locks.db", NULL, &store, &why) ||
///         holdfast_mutex(store, "order:1000", NULL, &order, &why) ||
///         holdfast_acquire(order, NULL, &held, &why)) {
///       fprintf(stderr, "%s\n", why.message);
///     }
///
/// Rules of all functions:
///   - The result is a holdfast_code: 0, or the error. The last parameter receives the text of the
///     error; it may be NULL. No C++ exception leaves the library.
///   - A handle is a key, not an address: NULL, a handle of another type and one that is closed are
///     an error code, never undefined behaviour. A handle's value is not used a second time.
///   - Everything is thread-safe. A handle may be closed while other threads use it: their calls
///     end as if the handle were still open. (Closing a queue ends a wait for its next event.)
///   - A struct begins with its size in bytes (sizeof), which is its version: a later library knows
///     more fields at the end, and accepts the shorter struct. Fields that are zero have the
///     default; `unused` fields are zero. holdfast_member, holdfast_rule and holdfast_part have no
///     size, and get no new fields.
///   - Text is UTF-8 that ends with a zero byte. Functions copy their arguments.
///   - In the child of a fork() every function returns HOLDFAST_FORKED for a handle of the
///     parent: open new handles there.
///   - Handles that are open when the process ends are not released: the store frees the locks when
///     it sees the death of the process, or when the lease ends.
///   - dlclose() leaves the library in memory: its threads run until the process ends.
#include <holdfast/c/error.h>
#include <holdfast/c/lease.h>
#include <holdfast/c/limit.h>
#include <holdfast/c/lock.h>
#include <holdfast/c/meet.h>
#include <holdfast/c/queue.h>
#include <holdfast/c/session.h>
