#pragma once

#include <holdfast/c/queue.h>
#include <holdfast/c/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Limits how much may go through: token buckets by name, several decided in one atomic step, on
/// the store's clock.
typedef struct holdfast_limiter holdfast_limiter;

typedef struct holdfast_rule {
  uint64_t tokens;        ///< this many come back …
  int64_t per_us;         ///< … in this time, from 1 us to 31 days
  uint64_t burst;         ///< the most that it holds. 0: as many as `tokens`
  const char* name;       ///< tells it from the others. NULL: its number
  const char* const* by;  ///< the parts of the key that have a bucket for each value. NULL: one for
  uint32_t by_count;      ///< all; and how many parts
  uint32_t interval;      ///< 1: all come back at once, each time `per_us` has gone by
} holdfast_rule;

/// A part of what a request is about: {"client", "acme"}.
typedef struct holdfast_part {
  const char* part;
  const char* value;
} holdfast_part;

/// What a limiter says. Refused is no error.
typedef struct holdfast_decision {
  uint32_t size;       ///< sizeof(holdfast_decision)
  uint32_t taken;      ///< 1: taken (or reserved); 0: refused
  int64_t wait_us;     ///< refused: until it might be taken. Reserved: until it counts
  uint64_t limit;      ///< of the rule that is nearest to saying no: what it holds when full, …
  uint64_t remaining;  ///< … whole tokens that it has, …
  int64_t reset_us;    ///< … and until it is full if nobody takes anything
  char rule[256];      ///< its name; empty: the wait ended before the store had answered
  uint64_t tokens;     ///< so many were taken, and …
  int64_t due_us[16];  ///< … each rule has them then, by the store's clock: for give_back
} holdfast_decision;

/// 1 to 16 rules; all who use the name say the same (HOLDFAST_CAPACITY_MISMATCH). `local_tokens`:
/// from 2, so many are taken for this process at once and given out without a round trip (0: off).
/// Making one costs no round trip.
int holdfast_limiter_open(holdfast_session* session, const char* name, const holdfast_rule* rules,
                          uint32_t count, uint64_t local_tokens, holdfast_limiter** limiter,
                          holdfast_error* why);
/// Takes n from the bucket of every rule, or nothing. `how` NULL or without a limit: waits until
/// they are there; one try: says at once whether they are. As an event: number is `taken`, and
/// wait_us as in the decision. One round trip.
int holdfast_limiter_take(holdfast_limiter* limiter, uint64_t n, const holdfast_part* key,
                          uint32_t parts, const holdfast_wait* how, holdfast_decision* decision,
                          holdfast_error* why);
/// Takes n that will be there within `longest_wait_us`, and does not wait. One round trip.
int holdfast_limiter_reserve(holdfast_limiter* limiter, uint64_t n, int64_t longest_wait_us,
                             const holdfast_part* key, uint32_t parts, holdfast_decision* decision,
                             holdfast_error* why);
/// What one try would say, and takes nothing. One round trip.
int holdfast_limiter_peek(holdfast_limiter* limiter, uint64_t n, const holdfast_part* key,
                          uint32_t parts, holdfast_decision* decision, holdfast_error* why);
/// Gives back all that this decision took and nobody used, under the same key: as many tokens as
/// leave to others what they took or reserved since, so that no more goes through than the rules
/// allow. `taken` is as the call has left it. One round trip.
int holdfast_limiter_give_back(holdfast_limiter* limiter, const holdfast_decision* taken,
                               const holdfast_part* key, uint32_t parts, holdfast_error* why);
/// The same for n tokens that count as taken now. One round trip.
int holdfast_limiter_refund(holdfast_limiter* limiter, uint64_t n, const holdfast_part* key,
                            uint32_t parts, holdfast_error* why);

#ifdef __cplusplus
}
#endif
