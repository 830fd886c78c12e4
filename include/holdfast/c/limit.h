#pragma once

#include <holdfast/c/queue.h>
#include <holdfast/c/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Limits how often something may happen, with token buckets by name. One atomic step decides about
/// several buckets, on the store's clock.
typedef struct holdfast_limiter holdfast_limiter;

typedef struct holdfast_rule {
  uint64_t tokens;        ///< this many come back …
  int64_t per_us;         ///< … in this time, from 1 us to 31 days
  uint64_t burst;         ///< the most that it holds. 0: as many as `tokens`
  const char* name;       ///< identifies the rule. NULL: its number
  const char* const* by;  ///< parts of the key: each value has a bucket. NULL: one bucket for all
  uint32_t by_count;      ///< how many parts `by` has
  uint32_t interval;      ///< 1: all come back at once, each time `per_us` has passed
} holdfast_rule;

/// A part of a key, with its value: {"client", "acme"}.
typedef struct holdfast_part {
  const char* part;
  const char* value;  ///< as rate_part::value in holdfast/rate_limiter.hpp
} holdfast_part;

/// The decision of a limiter. A refusal is not an error.
typedef struct holdfast_decision {
  uint32_t size;    ///< sizeof(holdfast_decision)
  uint32_t taken;   ///< 1: taken (or reserved); 0: refused
  int64_t wait_us;  ///< after a refusal: how long until the tokens might be there. After reserve:
                    ///< until they are there. After a call that may wait: how long it waited
  uint64_t limit;   ///< of the rule closest to refusing: tokens of its full bucket, …
  uint64_t remaining;  ///< … whole tokens that the bucket has, …
  int64_t reset_us;    ///< … and how long until it is full if no tokens are taken
  char rule[256];      ///< its name; empty: the wait ended before the store had answered
  uint64_t tokens;     ///< how many were taken
  /// When the bucket of each rule has them, in microseconds of the store's clock: for give_back.
  int64_t due_us[16];
} holdfast_decision;

/// 1 to 16 rules, under version 0; all programs that use the name state the same rules, or another
/// version (C++: rate_limiter::change_rules). Otherwise a take returns HOLDFAST_CAPACITY_MISMATCH.
/// `local_tokens`: if 2 or more, the process takes this many tokens at once, and gives them out
/// without a round trip (0: off). Returns HOLDFAST_INVALID_NAME; HOLDFAST_UNSUPPORTED on a store
/// without rate limiters; HOLDFAST_INVALID_ARGUMENT for rules that cannot be kept, or more
/// local_tokens than a bucket holds. No round trip.
int holdfast_limiter_open(holdfast_session* session, const char* name, const holdfast_rule* rules,
                          uint32_t count, uint64_t local_tokens, holdfast_limiter** limiter,
                          holdfast_error* why);
/// Takes n tokens from the bucket of every rule, or nothing. If `how` is NULL or without a limit,
/// it waits until there are enough tokens; with one try it answers at once. More than a bucket can
/// hold, and a key without a part of the rules: HOLDFAST_INVALID_ARGUMENT. If its stop was
/// requested and nothing is taken: HOLDFAST_CANCELLED. In the event, number is `taken`, and wait_us
/// is that of the decision; holdfast_queue_next_decision returns all of it. Tokens that were taken
/// for an event that nobody reads stay taken. One round trip. A try without a queue for fewer
/// than `local_tokens` takes none if the process has the tokens, and two if the store does not have
/// `local_tokens` to give.
int holdfast_limiter_take(holdfast_limiter* limiter, uint64_t n, const holdfast_part* key,
                          uint32_t parts, const holdfast_wait* how, holdfast_decision* decision,
                          holdfast_error* why);
/// As holdfast_queue_next. If the event is of a take, it also writes the decision, for
/// holdfast_limiter_give_back; for other events all of it is zero. No round trip.
int holdfast_queue_next_decision(holdfast_queue* queue, int64_t timeout_ns, holdfast_event* event,
                                 holdfast_decision* decision, holdfast_error* why);
/// Reserves n tokens that will be there within `longest_wait_us`, and does not wait. One round
/// trip. Errors as holdfast_limiter_take.
int holdfast_limiter_reserve(holdfast_limiter* limiter, uint64_t n, int64_t longest_wait_us,
                             const holdfast_part* key, uint32_t parts, holdfast_decision* decision,
                             holdfast_error* why);
/// Returns the decision of one try, and takes nothing. One round trip. Errors as
/// holdfast_limiter_take.
int holdfast_limiter_peek(holdfast_limiter* limiter, uint64_t n, const holdfast_part* key,
                          uint32_t parts, holdfast_decision* decision, holdfast_error* why);
/// Gives back all tokens that this decision took and nobody used, under the same key. Requests that
/// took or reserved tokens later keep their times, so some of the tokens may be lost
/// (docs/rate_limiter.md). Pass `taken` as the take has left it. HOLDFAST_INVALID_ARGUMENT if it
/// took nothing, or says that it took more than a limiter can count. One round trip.
int holdfast_limiter_give_back(holdfast_limiter* limiter, const holdfast_decision* taken,
                               const holdfast_part* key, uint32_t parts, holdfast_error* why);
/// The same for n tokens, as if they had been taken just now. Errors as holdfast_limiter_take. One
/// round trip.
int holdfast_limiter_refund(holdfast_limiter* limiter, uint64_t n, const holdfast_part* key,
                            uint32_t parts, holdfast_error* why);

#ifdef __cplusplus
}
#endif
