#include "kernel/permits.hpp"

#include <algorithm>
#include <limits>

namespace holdfast::kernel {

using namespace store;

namespace {

bool in_use(const permits_record& r) { return !r.holders.empty() || !r.queue.empty(); }

std::uint64_t held_weight(const permits_record& r) {
  std::uint64_t sum = 0;
  for (const holder& h : r.holders) sum += h.weight;
  return sum;
}

/// The circumstances of a step.
struct circumstances : moment, promises {
  owner_id secret{};       ///< of the holder that was removed in this step
  bool completed = false;  ///< a barrier's phase whose last participant notifies the others now
};

// Also greater than earlier fences if the record was lost: time has passed since.
std::uint64_t next_fence(permits_record& r, const moment& now, std::uint64_t at_least = 0) {
  const auto floor = static_cast<std::uint64_t>(std::max<std::int64_t>(now.wall_at, 0));
  r.last_fence = std::max({r.last_fence + 1, floor, at_least});
  return r.last_fence;
}

// Keeps the leader for observers, so that they miss none, however short its term.
void remember_leader(permits_record& r) {
  const holder& h = r.holders.back();
  if (r.history.size() == most_led) r.history.erase(r.history.begin());
  r.history.push_back({h.fence, h.since_wall_at, h.note});
}

void hold_now(permits_record& r, waiter&& w, std::int64_t lasts, const moment& now,
              std::uint64_t at_least = 0) {
  r.holders.push_back({w.owner, w.weight, next_fence(r, now, at_least), now.now_at + lasts,
                       now.wall_at, std::move(w.peer), std::move(w.note), w.lingers});
  if (r.kind == kind::election) remember_leader(r);
}

void tell_granted(const permits_record& r, permits_reply& reply, const owner_id& secret = {}) {
  const holder& h = r.holders.back();
  reply.tell.push_back(
      {notification_kind::granted, {}, h.owner, h.fence, h.expires_at, h.peer, secret});
}

// A barrier: a participant is missing, so the phase is broken, and all waiters are notified.
void scatter(permits_record& r, permits_reply& reply) {
  for (const waiter& w : r.queue) {
    if (!w.peer.empty())
      reply.tell.push_back({notification_kind::opened, {}, w.owner, 0, 0, w.peer});
  }
  r.holders.clear();
  r.queue.clear();
}

// A condition_variable: wakes the first waiters. They have the claim time to report that they are
// awake; otherwise the waiters behind them are woken.
std::uint32_t wake(permits_record& r, std::size_t count, const circumstances& now,
                   permits_reply& reply) {
  std::uint32_t woken = 0;
  for (; woken < count && !r.queue.empty(); ++woken) {
    waiter w = std::move(r.queue.front());
    r.queue.erase(r.queue.begin());
    hold_now(r, std::move(w), now.claim, now);
    tell_granted(r, reply);
  }
  return woken;
}

// Step 1. Removes what has expired, for every command. Returns false if nothing has.
bool expire(permits_record& r, const circumstances& now, permits_reply& reply) {
  const auto over = [&](const auto& x) { return x.expires_at <= now.now_at; };
  const auto died = [&](const waiter& w) { return over(w) && !w.peer.empty(); };
  const bool missing = r.kind == kind::barrier && std::any_of(r.queue.begin(), r.queue.end(), died);
  const auto gone = std::erase_if(r.holders, over);
  const auto away = std::erase_if(r.queue, over);
  if (missing || (r.kind == kind::barrier && gone > 0)) scatter(r, reply);
  if (r.kind == kind::condition_variable) (void)wake(r, gone, now, reply);
  return gone + away > 0;
}

// A store of a quorum learns the fence that another store has granted.
void raise_fence(permits_record& r, holder& mine, std::uint64_t at_least) {
  mine.fence = std::max(mine.fence, at_least);
  r.last_fence = std::max(r.last_fence, at_least);
}

// A waiter that asks is alive, and so are all waiters of its session for the name: their entries
// end then.
void stay(permits_record& r, const waiter& mine, std::int64_t until) {
  const auto of_one = [&](const waiter& w) {
    return mine.peer.empty() ? w.owner == mine.owner : w.peer == mine.peer;
  };
  for (waiter& w : r.queue) {
    if (of_one(w)) w.expires_at = until;
  }
}

void enqueue(permits_record& r, const permits_command& c, const moment& now) {
  const auto behind = std::find_if(r.queue.begin(), r.queue.end(),
                                   [&](const waiter& w) { return w.priority < c.priority; });
  const auto stands =
      c.kind == kind::barrier && c.outlives_session ? std::string() : std::string(c.peer);
  const auto mine =
      r.queue.insert(behind, waiter{c.owner, c.weight, c.priority, c.lease_us, 0, now.wall_at,
                                    stands, std::string(c.note), c.lingers});
  stay(r, *mine, now.now_at + c.queue_lease_us);
}

// A barrier: when all participants have arrived, all are released; but the last one alone first, if
// it asks for that. If participants have left before it notifies the others, the phase is completed
// all the same: the work that is done once in a phase has been done. Participants that dropped out
// stay arrived.
void open_if_all_came(permits_record& r, const permits_command& c, const circumstances& now,
                      permits_reply& reply) {
  if (r.queue.size() < r.capacity && !now.completed) return;
  std::vector<waiter> all;
  all.swap(r.queue);
  const bool alone = c.verb == permits_verb::acquire && c.lingers;
  for (waiter& w : all) {
    const bool own = w.owner == c.owner;
    if (alone ? !own : w.peer.empty()) {
      if (w.peer.empty()) w.expires_at = now.now_at + dropped_lasts_us;
      r.queue.push_back(std::move(w));
      continue;
    }
    w.lingers = alone;
    const std::int64_t lasts = w.lease_us;
    hold_now(r, std::move(w), lasts, now, own ? c.fence_at_least : 0);
    if (!own) tell_granted(r, reply);
  }
  if (r.holders.empty()) r.queue.clear();
}

// Notifies holders that keep the lock idle, so that they release it.
void tell_lingering(const permits_record& r, permits_reply& reply) {
  if (r.kind == kind::condition_variable) return;
  for (const holder& h : r.holders) {
    if (h.lingers)
      reply.tell.push_back({notification_kind::wanted, {}, h.owner, h.fence, h.expires_at, h.peer});
  }
}

// Step 6. Serves the head of the queue for as long as it fits. The caller receives its grant with
// the reply, and gets the whole lease; the others have to claim theirs. If there are still waiters,
// the holders that linger are notified of that.
void hand_over(permits_record& r, const permits_command& c, const circumstances& now,
               permits_reply& reply) {
  if (r.kind == kind::condition_variable) return;
  if (r.kind == kind::barrier) return open_if_all_came(r, c, now, reply);
  const bool asks = c.verb == permits_verb::acquire || c.verb == permits_verb::renew;
  const std::uint64_t before = held_weight(r);
  std::uint64_t used = before;
  while (!r.queue.empty() && used + r.queue.front().weight <= r.capacity) {
    waiter w = std::move(r.queue.front());
    r.queue.erase(r.queue.begin());
    used += w.weight;
    const bool own = asks && w.owner == c.owner;
    const std::int64_t lasts = own ? w.lease_us : std::min(w.lease_us, now.claim);
    if (own && c.outlives_session) w.peer.clear();
    // With priorities, another waiter may have been told that it is behind the holder that left,
    // and be served later all the same.
    const owner_id secret = w.priority == 0 ? now.secret : owner_id{};
    hold_now(r, std::move(w), lasts, now, own ? c.fence_at_least : 0);
    if (!own) tell_granted(r, reply, secret);
  }
  if (used != before && !r.queue.empty()) tell_lingering(r, reply);
}

void add_blocker(std::vector<std::string>& blockers, const std::string& peer) {
  if (peer.empty() || blockers.size() >= max_blockers) return;
  if (std::find(blockers.begin(), blockers.end(), peer) == blockers.end()) blockers.push_back(peer);
}

/// The time when the n-th of these leases ends, in the order of their ends.
std::int64_t nth_end(const std::vector<holder>& all, std::size_t n) {
  std::vector<std::int64_t> ends;
  ends.reserve(all.size());
  for (const holder& h : all) ends.push_back(h.expires_at);
  const auto at = ends.begin() + static_cast<std::ptrdiff_t>(n - 1);
  std::nth_element(ends.begin(), at, ends.end());
  return *at;
}

// The pause if the store, whose time counts from 1970, does not notify. It grows with the time for
// which the lock has been held: a lock just acquired may be released soon. A clock that was set
// back tells nothing. A waiter that is granted the lock has to poll before that grant ends. The
// waiters of a barrier or a condition do not wait for each other.
std::int64_t untold_pause(const permits_record& r, const permits_command& c, const moment& now,
                          const permits_reply& reply) {
  if (r.kind == kind::barrier || r.kind == kind::condition_variable) {
    const auto waited = now.now_at - find(r.queue, c.owner)->since_wall_at;
    return std::min(untold_pause_us(waited, r.queue.size()), c.lease_us / 2);
  }
  auto since = now.now_at;
  for (const holder& h : r.holders) since = std::min(since, h.since_wall_at);
  const auto step = since == now.now_at ? untold_step_at_most_us
                                        : std::clamp(now.now_at - since, untold_step_at_least_us,
                                                     untold_step_at_most_us);
  const auto pause = std::min({untold_retry_after_us, c.lease_us / 2, reply.position * step});
  return reply.position == 1 ? std::min(pause, reply.retry_after_us) : pause;
}

// The n-th waiter polls when n leases have ended, because no notification reports the end of a
// lease. Only the first few waiters do so; the others are notified when their turn comes.
void describe_wait(const permits_record& r, const permits_command& c, const circumstances& now,
                   permits_reply& reply) {
  for (const holder& h : r.holders) add_blocker(reply.blockers, h.peer);
  std::int64_t wait = retry_after_us;
  for (const waiter& w : r.queue) {
    ++reply.position;
    if (w.owner == c.owner) break;
    add_blocker(reply.blockers, w.peer);
  }
  if (r.kind == kind::barrier) {
    for (const waiter& w : r.queue) add_blocker(reply.blockers, w.peer);
  }
  wait = std::min(wait, retry_step_us * reply.position);
  if (wait < retry_after_us && reply.position <= r.holders.size()) {
    wait = std::min(wait, nth_end(r.holders, reply.position) - now.now_at);
  }
  reply.retry_after_us = std::max(wait, retry_after_at_least_us);
  if (!now.tells) reply.retry_after_us = untold_pause(r, c, now, reply);
  if (r.kind == kind::barrier) reply.position = static_cast<std::uint32_t>(r.queue.size());
}

// Names the owner whose secret proves to this waiter, after the release, that its turn has come.
void name_who_is_before(const permits_record& r, const owner_id& owner, permits_reply& reply) {
  const auto mine = find(r.queue, owner);
  if (!passes_secrets(r.kind) || mine->priority != 0) return;
  if (mine != r.queue.begin()) {
    reply.behind = std::prev(mine)->owner;
  } else if (!r.holders.empty()) {
    reply.behind = r.holders.front().owner;
  }
}

void report_holding(const permits_record& r, const owner_id& owner, permits_reply& reply) {
  const auto mine = find(r.holders, owner);
  reply.outcome = permits_outcome::granted;
  reply.fence = mine->fence;
  reply.expires_at = mine->expires_at;
  if (r.kind == kind::barrier) reply.position = mine->lingers ? 1 : 0;
}

// Step 5, acquire, at a barrier. A participant that arrives again names its arrival in the round
// before: if the record does not contain that one any more, the barrier was broken.
void arrive(permits_record& r, const permits_command& c, const circumstances& now,
            permits_reply& reply) {
  const auto place = find(r.queue, c.owner);
  const bool fresh = place == r.queue.end();
  if (const auto mine = find(r.holders, c.owner); mine != r.holders.end()) {
    mine->expires_at = now.now_at + c.lease_us;
  } else if (place != r.queue.end()) {
    stay(r, *place, now.now_at + c.queue_lease_us);
  } else if (c.replaces && !reply.replaced) {
    reply.outcome = permits_outcome::absent;
    return;
  } else if (r.holders.size() + r.queue.size() >= r.capacity) {
    reply.outcome = permits_outcome::busy;
    return;
  } else {
    enqueue(r, c, now);
  }
  hand_over(r, c, now, reply);
  if (find(r.holders, c.owner) != r.holders.end()) return report_holding(r, c.owner, reply);
  // It was the last participant, and none of them comes again.
  if (find(r.queue, c.owner) == r.queue.end()) return;
  describe_wait(r, c, now, reply);
  reply.outcome = permits_outcome::queued;
  reply.fresh = fresh;
}

// Step 5, acquire and renew, of a condition_variable: a woken waiter leaves it.
bool wakes_up(permits_record& r, const permits_command& c, permits_reply& reply) {
  if (r.kind != kind::condition_variable || find(r.holders, c.owner) == r.holders.end()) {
    return false;
  }
  report_holding(r, c.owner, reply);
  drop(r.holders, c.owner);
  return true;
}

// Step 5, acquire.
void acquire(permits_record& r, const permits_command& c, const circumstances& now,
             permits_reply& reply) {
  if (r.kind == kind::barrier) return arrive(r, c, now, reply);
  if (wakes_up(r, c, reply)) return;
  if (const auto mine = find(r.holders, c.owner); mine != r.holders.end()) {
    // The owner asks again; or an earlier attempt arrives late, after the lease was extended.
    mine->expires_at = std::max(mine->expires_at, now.now_at + c.lease_us);
    raise_fence(r, *mine, c.fence_at_least);
    if (c.outlives_session) mine->peer.clear();
    hand_over(r, c, now, reply);
    return report_holding(r, c.owner, reply);
  }
  const auto place = find(r.queue, c.owner);
  const bool fresh = place == r.queue.end();
  if (fresh) {
    enqueue(r, c, now);
  } else {
    stay(r, *place, now.now_at + c.queue_lease_us);
  }
  hand_over(r, c, now, reply);
  if (find(r.holders, c.owner) != r.holders.end()) return report_holding(r, c.owner, reply);
  describe_wait(r, c, now, reply);
  reply.outcome = c.wait ? permits_outcome::queued : permits_outcome::busy;
  if (reply.position == 1 && reply.tell.empty()) tell_lingering(r, reply);
  reply.fresh = fresh && c.wait;
  if (c.wait) return name_who_is_before(r, c.owner, reply);
  drop(r.queue, c.owner);  // the waiters behind may fit now that it has given up
  hand_over(r, c, now, reply);
}

// Step 5, renew. All participants of a barrier ask at once whether it has opened: with `wait` that
// changes nothing, so they need not wait for each other.
void renew(permits_record& r, const permits_command& c, const circumstances& now,
           permits_reply& reply) {
  if (wakes_up(r, c, reply)) return;
  const bool only_asks = r.kind == kind::barrier && c.wait;
  if (const auto mine = find(r.holders, c.owner); mine != r.holders.end() && !only_asks) {
    mine->expires_at = now.now_at + c.lease_us;
  }
  if (const auto place = find(r.queue, c.owner); place != r.queue.end() && !only_asks) {
    stay(r, *place, now.now_at + c.queue_lease_us);
  }
  hand_over(r, c, now, reply);
  if (find(r.holders, c.owner) != r.holders.end()) return report_holding(r, c.owner, reply);
  const bool waits = find(r.queue, c.owner) != r.queue.end();
  reply.outcome = waits ? permits_outcome::queued : permits_outcome::absent;
  if (waits) describe_wait(r, c, now, reply);
}

// Step 5, release. If the last participant leaves a barrier, those that dropped out are forgotten.
void release(permits_record& r, const permits_command& c, circumstances& now,
             permits_reply& reply) {
  const bool held = drop(r.holders, c.owner);
  if (held && passes_secrets(r.kind)) now.secret = c.secret;
  const bool was_there = held || drop(r.queue, c.owner);
  reply.outcome = was_there ? permits_outcome::done : permits_outcome::absent;
  if (held && r.kind == kind::condition_variable) (void)wake(r, 1, now, reply);
  hand_over(r, c, now, reply);
  const auto stays = [](const waiter& w) { return w.peer.empty(); };
  const bool last =
      was_there && r.holders.empty() && std::all_of(r.queue.begin(), r.queue.end(), stays);
  if (r.kind == kind::barrier && last) r.queue.clear();
}

// Step 5, resize. A greater weight is granted only if there is room at once: two readers that both
// waited for the other to leave would wait for ever. A holder that becomes stronger gets a new
// fence.
void resize(permits_record& r, const permits_command& c, const circumstances& now,
            permits_reply& reply) {
  const auto mine = find(r.holders, c.owner);
  if (mine == r.holders.end()) {
    reply.outcome = permits_outcome::absent;
  } else if (held_weight(r) - mine->weight + c.weight > r.capacity) {
    reply.outcome = permits_outcome::busy;
  } else {
    if (c.weight > mine->weight) mine->fence = next_fence(r, now);
    mine->weight = c.weight;
    report_holding(r, c.owner, reply);
  }
  hand_over(r, c, now, reply);
}

// Step 5, evict.
void evict(permits_record& r, const permits_command& c, const circumstances& now,
           permits_reply& reply) {
  const auto gone =
      std::erase_if(r.holders, [&](const holder& h) { return !c.owner || h.owner == c.owner; });
  const auto waited = r.kind == kind::barrier && !c.owner ? r.queue.size() : 0;
  reply.position = static_cast<std::uint32_t>(gone + waited);
  reply.outcome = reply.position > 0 ? permits_outcome::done : permits_outcome::absent;
  if (r.kind == kind::barrier && reply.position > 0) scatter(r, reply);
  hand_over(r, c, now, reply);
}

// Step 5, notify.
void notify(permits_record& r, const permits_command& c, const circumstances& now,
            permits_reply& reply) {
  if (r.kind == kind::condition_variable) reply.position = wake(r, c.weight, now, reply);
  reply.outcome = reply.position > 0 ? permits_outcome::done : permits_outcome::absent;
}

void carry_out(permits_record& r, const permits_command& c, circumstances& now,
               permits_reply& reply) {
  switch (c.verb) {
    case permits_verb::acquire:
      return acquire(r, c, now, reply);
    case permits_verb::renew:
      return renew(r, c, now, reply);
    case permits_verb::release:
      return release(r, c, now, reply);
    case permits_verb::resize:
      return resize(r, c, now, reply);
    case permits_verb::evict:
      return evict(r, c, now, reply);
    case permits_verb::notify:
      return notify(r, c, now, reply);
    case permits_verb::inspect:
      return;
  }
}

}  // namespace

permits_reply apply(permits_record& r, const permits_command& c, const moment& at,
                    const promises& of) {
  circumstances now{at, of};
  permits_reply reply;
  reply.now_at = now.now_at;
  reply.wall_at = now.wall_at;
  // 1. Remove what has expired.
  const bool ended = expire(r, now, reply);
  // 2. An inspection changes nothing else.
  if (c.verb == permits_verb::inspect) {
    reply.found = r;
    reply.tell.clear();
    return reply;
  }
  // 3. A name has one kind at a time; a name that is not in use may become another kind.
  if (c.verb == permits_verb::acquire || c.verb == permits_verb::notify) {
    if (!in_use(r)) {
      if (r.kind != c.kind) r.history.clear();
      r.kind = c.kind;
      r.capacity = c.capacity;
    } else if (r.kind != c.kind || r.capacity != c.capacity) {
      reply.outcome =
          r.kind != c.kind ? permits_outcome::kind_mismatch : permits_outcome::capacity_mismatch;
      reply.found = r;
      reply.changed = !reply.tell.empty();
      return reply;
    }
  }
  // 4. One owner leaves so that another of the same session can enter: one step, not two.
  if (c.replaces) {
    const auto leaving = find(r.holders, c.replaces);
    const bool held = leaving != r.holders.end();
    if (held && passes_secrets(r.kind)) now.secret = c.secret;
    now.completed = held && r.kind == kind::barrier && leaving->lingers && !c.lingers;
    if (held) r.holders.erase(leaving);
    reply.replaced = held || drop(r.queue, c.replaces);
  }
  // 5., 6. The command itself, and the hand-over that may follow from it.
  const auto place = find(r.queue, c.owner);
  const bool waited = place != r.queue.end() && !ended && !reply.replaced;
  const std::int64_t left = waited ? place->expires_at - now.now_at : 0;
  carry_out(r, c, now, reply);
  // 7. Nothing but the fence is kept of an unused name.
  if (!in_use(r)) r.capacity = 0;
  // A poll that did nothing but extend an entry need not be written if it comes early. Not if the
  // waiter for a lock is notified: it believes a notification for as long as its last poll has
  // extended its entry. And a participant of a barrier does not poll to stay.
  const bool relies_on_it =
      r.kind != kind::condition_variable && (of.tells || r.kind == kind::barrier);
  const bool early = of.whole_records && !relies_on_it &&
                     reply.outcome == permits_outcome::queued && reply.tell.empty() &&
                     lasts_until_the_poll_after_next(left, c.queue_lease_us, reply.retry_after_us);
  // In a batch, the next waiter of this session must not take its entry for an extended one.
  if (early) stay(r, *find(r.queue, c.owner), now.now_at + left);
  const bool unchanged = early || reply.outcome == permits_outcome::absent;
  reply.changed = !unchanged || !reply.tell.empty();
  return reply;
}

bool forget(permits_record& r, std::span<const std::string> peers) {
  bool found = false;
  const auto end = [&](auto& list) {
    for (auto& x : list) {
      if (std::find(peers.begin(), peers.end(), x.peer) == peers.end()) continue;
      x.expires_at = std::numeric_limits<std::int64_t>::min();
      found = true;
    }
  };
  end(r.holders);
  end(r.queue);
  return found;
}

}  // namespace holdfast::kernel
