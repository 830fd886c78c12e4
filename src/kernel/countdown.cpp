#include "kernel/countdown.hpp"

#include <algorithm>

#include "kernel/permits.hpp"

namespace holdfast::kernel {

using namespace store;

namespace {

// The arrivals stay: an arrival that is repeated after the end has counted, and does not create
// another latch.
void end(countdown_record& r) { r = countdown_record{.arrivals = std::move(r.arrivals)}; }

// Step 1. Returns false if nothing has expired.
bool expire(countdown_record& r, const moment& now) {
  const bool over = r.count != 0 && r.expires_at <= now.now_at;
  if (over) end(r);
  const auto gone =
      std::erase_if(r.arrivals, [&](const auto& a) { return a.forget_at <= now.now_at; }) +
      std::erase_if(r.waiting, [&](const auto& w) { return w.expires_at <= now.now_at; });
  return over || gone > 0;
}

bool open(const countdown_record& r) { return r.count != 0 && r.remaining == 0; }

void use(countdown_record& r, const countdown_command& c, const moment& now) {
  if (r.count == 0) r.count = r.remaining = c.count;
  r.expires_at = std::max(r.expires_at, now.now_at + c.keep_us);
}

countdown_outcome state_of(const countdown_record& r) {
  return open(r) ? countdown_outcome::open : countdown_outcome::closed;
}

void tell_all(countdown_record& r, countdown_reply& reply) {
  for (auto& w : r.waiting) {
    reply.tell.push_back({notification_kind::opened, {}, w.owner, 0, 0, std::move(w.peer)});
  }
  r.waiting.clear();
}

// Step 4, arrive.
void arrive(countdown_record& r, const countdown_command& c, const moment& now,
            countdown_reply& reply) {
  if (find(r.arrivals, c.owner) != r.arrivals.end()) {
    reply.outcome = state_of(r);
    return;
  }
  const auto left = r.count == 0 ? c.count : r.remaining;
  if (c.drop == 0 || c.drop > left) {
    reply.outcome = countdown_outcome::too_many;
    reply.remaining = left;
    return;
  }
  use(r, c, now);
  r.remaining -= c.drop;
  r.arrivals.push_back({c.owner, now.now_at + std::max(c.repeats_us, remember_us)});
  if (open(r)) tell_all(r, reply);
  reply.outcome = state_of(r);
}

void leave(countdown_record& r, const countdown_command& c) { drop(r.waiting, c.owner); }

// Step 4, wait.
void wait(countdown_record& r, const countdown_command& c, const moment& now,
          countdown_reply& reply) {
  use(r, c, now);
  reply.outcome = state_of(r);
  if (open(r)) return;
  reply.retry_after_us = latch_retry_after_us(c.keep_us);
  if (c.queue_lease_us == 0) return leave(r, c);
  if (const auto mine = find(r.waiting, c.owner); mine != r.waiting.end()) {
    mine->expires_at = now.now_at + c.queue_lease_us;
    return;
  }
  r.waiting.push_back({c.owner, 1, 0, 0, now.now_at + c.queue_lease_us, now.wall_at,
                       std::string(c.peer), std::string(c.note)});
}

void carry_out(countdown_record& r, const countdown_command& c, const moment& now,
               countdown_reply& reply) {
  switch (c.verb) {
    case countdown_verb::arrive:
      return arrive(r, c, now, reply);
    case countdown_verb::wait:
      return wait(r, c, now, reply);
    case countdown_verb::leave:
      return leave(r, c);
    case countdown_verb::remove:
      return end(r);
    case countdown_verb::inspect:
      if (r.count != 0) reply.found = r;
      return;
  }
}

}  // namespace

countdown_reply apply(countdown_record& r, const countdown_command& c, const moment& now,
                      bool tells) {
  countdown_reply reply;
  reply.now_at = now.now_at;
  // 1. Remove what has expired.
  const bool ended = expire(r, now);
  // 2. All users of a latch have to name the same count.
  const bool uses = c.verb == countdown_verb::arrive || c.verb == countdown_verb::wait;
  if (uses && r.count != 0 && r.count != c.count) {
    reply.outcome = countdown_outcome::capacity_mismatch;
    reply.found = r;
    return reply;
  }
  // 3., 4. The command itself.
  const auto place = find(r.waiting, c.owner);
  const std::int64_t left = place != r.waiting.end() && !ended ? place->expires_at - now.now_at : 0;
  const std::int64_t kept = r.expires_at - now.now_at;
  carry_out(r, c, now, reply);
  const auto mine = tells ? r.waiting.end() : find(r.waiting, c.owner);
  if (mine != r.waiting.end()) {
    const auto pause = untold_pause_us(now.now_at - mine->since_wall_at, r.waiting.size());
    reply.retry_after_us = std::min(reply.retry_after_us, pause);
  }
  if (reply.outcome != countdown_outcome::too_many) reply.remaining = r.remaining;
  // As for permits. A latch is kept from its last use on; a poll that is not written must not make
  // that much shorter.
  const bool early = c.verb == countdown_verb::wait && reply.outcome == countdown_outcome::closed &&
                     kept >= c.keep_us - c.keep_us / 64 &&
                     lasts_until_the_poll_after_next(left, c.queue_lease_us, reply.retry_after_us);
  reply.changed =
      c.verb != countdown_verb::inspect && reply.outcome != countdown_outcome::too_many && !early;
  return reply;
}

bool forget(countdown_record& r, std::span<const std::string> peers) {
  return std::erase_if(r.waiting, [&](const auto& w) {
           return std::find(peers.begin(), peers.end(), w.peer) != peers.end();
         }) > 0;
}

}  // namespace holdfast::kernel
