#include "kernel/seeded_bugs.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "kernel/permits.hpp"

namespace kernel_test {

using namespace holdfast::store;
using holdfast::kernel::apply;

namespace {

template <class List>
auto find(List& list, const owner_id& owner) {
  return std::find_if(list.begin(), list.end(), [&](const auto& x) { return x.owner == owner; });
}

permits_reply forgets_to_expire(permits_record& r, const permits_command& c, const moment& now) {
  std::map<owner_id, std::int64_t> ends;
  const auto postpone = [&](auto& x) {
    ends[x.owner] = x.expires_at;
    x.expires_at = std::numeric_limits<std::int64_t>::max();
  };
  for (auto& h : r.holders) postpone(h);
  for (auto& w : r.queue) postpone(w);
  permits_reply reply = apply(r, c, now);
  const auto restore = [&](auto& x) {
    if (x.expires_at == std::numeric_limits<std::int64_t>::max()) x.expires_at = ends[x.owner];
  };
  for (auto& h : r.holders) restore(h);
  for (auto& w : r.queue) restore(w);
  return reply;
}

permits_reply releases_any_holder(permits_record& r, const permits_command& c, const moment& now) {
  permits_command changed = c;
  if (c.verb == permits_verb::release && !r.holders.empty()) changed.owner = r.holders[0].owner;
  return apply(r, changed, now);
}

permits_reply hands_over_to_two(permits_record& r, const permits_command& c, const moment& now) {
  permits_reply reply = apply(r, c, now);
  if (reply.tell.empty() || r.queue.empty()) return reply;
  const waiter next = r.queue.front();
  r.queue.erase(r.queue.begin());
  const auto ends = now.now_at + 1'000;
  r.holders.push_back(
      {next.owner, next.weight, ++r.last_fence, ends, now.wall_at, next.peer, "", false});
  reply.tell.push_back({notification_kind::granted, {}, next.owner, r.last_fence, ends, next.peer});
  return reply;
}

permits_reply grants_the_same_fence_twice(permits_record& r, const permits_command& c,
                                          const moment& now) {
  permits_reply reply = apply(r, c, now);
  if (reply.tell.size() < 2 || reply.tell[1].what != notification_kind::granted) return reply;
  find(r.holders, reply.tell[1].owner)->fence = reply.tell[0].fence;
  reply.tell[1].fence = reply.tell[0].fence;
  return reply;
}

permits_reply forgets_to_hand_over(permits_record& r, const permits_command& c, const moment& now) {
  if (c.verb != permits_verb::release) return apply(r, c, now);
  auto queue = std::move(r.queue);
  r.queue.clear();
  permits_reply reply = apply(r, c, now);
  std::erase_if(queue,
                [&](const auto& w) { return w.owner == c.owner || w.expires_at <= now.now_at; });
  r.queue = std::move(queue);
  return reply;
}

permits_reply leaves_untold(notification_kind what, permits_record& r, const permits_command& c,
                            const moment& now) {
  permits_reply reply = apply(r, c, now);
  std::erase_if(reply.tell, [&](const notification& n) { return n.what == what; });
  return reply;
}

permits_reply tells_no_waiter(permits_record& r, const permits_command& c, const moment& now) {
  return leaves_untold(notification_kind::granted, r, c, now);
}

permits_reply lets_them_linger(permits_record& r, const permits_command& c, const moment& now) {
  return leaves_untold(notification_kind::wanted, r, c, now);
}

permits_reply grants_for_the_whole_lease(permits_record& r, const permits_command& c,
                                         const moment& now) {
  const auto queue = r.queue;
  permits_reply reply = apply(r, c, now);
  for (notification& n : reply.tell) {
    if (n.what != notification_kind::granted) continue;
    n.expires_at = now.now_at + find(queue, n.owner)->lease_us;
    find(r.holders, n.owner)->expires_at = n.expires_at;
  }
  return reply;
}

// A counter that is kept only in the record restarts when the record is lost.
permits_reply counts_fences_from_one(permits_record& r, const permits_command& c,
                                     const moment& now) {
  return apply(r, c, {now.now_at, 1});
}

permits_reply gives_a_new_fence_to_a_repeated_acquire(permits_record& r, const permits_command& c,
                                                      const moment& now) {
  const bool held = find(r.holders, c.owner) != r.holders.end();
  permits_reply reply = apply(r, c, now);
  if (!held || c.verb != permits_verb::acquire || reply.outcome != permits_outcome::granted) {
    return reply;
  }
  reply.fence = find(r.holders, c.owner)->fence = ++r.last_fence;
  return reply;
}

permits_reply keeps_the_fence_of_a_reader_that_became_writer(permits_record& r,
                                                             const permits_command& c,
                                                             const moment& now) {
  const auto old = r;
  permits_reply reply = apply(r, c, now);
  if (c.verb != permits_verb::resize || reply.outcome != permits_outcome::granted) return reply;
  if (const auto was = find(old.holders, c.owner); was != old.holders.end()) {
    reply.fence = find(r.holders, c.owner)->fence = was->fence;
  }
  return reply;
}

permits_reply serves_the_last_first(permits_record& r, const permits_command& c,
                                    const moment& now) {
  permits_reply reply = apply(r, c, now);
  if (reply.outcome != permits_outcome::queued || c.verb != permits_verb::acquire) return reply;
  const auto mine = find(r.queue, c.owner);
  std::rotate(r.queue.begin(), mine, mine + 1);
  reply.position = 1;
  return reply;
}

permits_reply ignores_priority(permits_record& r, const permits_command& c, const moment& now) {
  permits_command changed = c;
  changed.priority = 0;
  const auto old = r.queue;
  permits_reply reply = apply(r, changed, now);
  for (auto& w : r.queue) {
    if (w.owner == c.owner && find(old, w.owner) == old.end()) w.priority = c.priority;
  }
  return reply;
}

// The small request fits now, the large one at the head does not: unfair, and the large one
// starves.
permits_reply lets_small_ones_pass(permits_record& r, const permits_command& c, const moment& now) {
  auto head = r.queue;
  if (c.verb != permits_verb::acquire || find(r.queue, c.owner) != r.queue.end())
    return apply(r, c, now);
  r.queue.clear();
  if (r.holders.empty()) {
    r.queue = std::move(head);
    return apply(r, c, now);
  }
  permits_reply reply = apply(r, c, now);
  std::erase_if(head, [&](const auto& w) { return w.expires_at <= now.now_at; });
  r.queue.insert(r.queue.begin(), head.begin(), head.end());
  if (reply.position > 0) reply.position += static_cast<std::uint32_t>(head.size());
  return reply;
}

permits_reply leaves_a_try_in_the_queue(permits_record& r, const permits_command& c,
                                        const moment& now) {
  permits_command changed = c;
  changed.wait = true;
  permits_reply reply = apply(r, changed, now);
  if (!c.wait && reply.outcome == permits_outcome::queued) reply.outcome = permits_outcome::busy;
  return reply;
}

permits_reply renews_what_is_not_held(permits_record& r, const permits_command& c,
                                      const moment& now) {
  permits_reply reply = apply(r, c, now);
  if (c.verb != permits_verb::renew || reply.outcome != permits_outcome::absent) return reply;
  permits_command changed = c;
  changed.verb = permits_verb::acquire;
  return apply(r, changed, now);
}

permits_reply upgrades_without_room(permits_record& r, const permits_command& c,
                                    const moment& now) {
  permits_reply reply = apply(r, c, now);
  const auto mine = find(r.holders, c.owner);
  if (c.verb != permits_verb::resize || mine == r.holders.end()) return reply;
  if (c.weight > mine->weight) mine->fence = ++r.last_fence;
  mine->weight = c.weight;
  reply.outcome = permits_outcome::granted;
  reply.fence = mine->fence;
  reply.expires_at = mine->expires_at;
  return reply;
}

permits_reply keeps_an_empty_record(permits_record& r, const permits_command& c,
                                    const moment& now) {
  const auto capacity = std::max(r.capacity, c.capacity);
  permits_reply reply = apply(r, c, now);
  if (r.capacity == 0) r.capacity = capacity;
  return reply;
}

permits_reply drops_large_waiters(permits_record& r, const permits_command& c, const moment& now) {
  permits_reply reply = apply(r, c, now);
  if (c.verb != permits_verb::release || reply.outcome != permits_outcome::done) return reply;
  std::erase_if(r.queue, [&](const auto& w) { return w.weight > 1; });
  if (r.queue.empty() && r.holders.empty()) r.capacity = 0;
  return reply;
}

// A waiter without a priority is behind the same holder, and a third one may send it the lock.
permits_reply passes_a_secret_to_a_priority(permits_record& r, const permits_command& c,
                                            const moment& now) {
  const bool held = find(r.holders, c.owner) != r.holders.end();
  permits_reply reply = apply(r, c, now);
  const bool released = held && c.verb == permits_verb::release;
  for (notification& n : reply.tell) {
    if (released && r.kind == kind::mutex && n.what == notification_kind::granted)
      n.secret = c.secret;
  }
  return reply;
}

permits_reply passes_the_secret_of_a_waiter(permits_record& r, const permits_command& c,
                                            const moment& now) {
  const bool waited = c.verb == permits_verb::release && find(r.queue, c.owner) != r.queue.end();
  permits_reply reply = apply(r, c, now);
  for (notification& n : reply.tell) {
    const bool granted = r.kind == kind::mutex && n.what == notification_kind::granted;
    if (waited && granted) n.secret = c.secret;
  }
  return reply;
}

permits_reply puts_all_behind_the_holder(permits_record& r, const permits_command& c,
                                         const moment& now) {
  permits_reply reply = apply(r, c, now);
  if (reply.behind) reply.behind = r.holders.front().owner;
  return reply;
}

using kernel_function = permits_reply (*)(permits_record&, const permits_command&, const moment&);

bug make(const char* name, kernel_function kernel, const char* breaks) {
  return {name, [kernel] { return apply_function(kernel); }, breaks};
}

}  // namespace

std::vector<bug> permits_bugs() {
  return {
      make("forgets_to_expire", forgets_to_expire, ""),
      make("releases_any_holder", releases_any_holder, ""),
      make("hands_over_to_two", hands_over_to_two, ""),
      make("grants_the_same_fence_twice", grants_the_same_fence_twice, ""),
      make("forgets_to_hand_over", forgets_to_hand_over, "no waiter waits while there is room"),
      make("tells_no_waiter", tells_no_waiter, "each new holder is notified"),
      make("lets_them_linger", lets_them_linger, "a holder that lingers is notified of a waiter"),
      make("grants_for_the_whole_lease", grants_for_the_whole_lease,
           "a grant that is not claimed yet ends soon"),
      make("counts_fences_from_one", counts_fences_from_one, "a new hold has a greater fence"),
      make("gives_a_new_fence_to_a_repeated_acquire", gives_a_new_fence_to_a_repeated_acquire, ""),
      make("keeps_the_fence_of_a_reader_that_became_writer",
           keeps_the_fence_of_a_reader_that_became_writer, "a new hold has a greater fence"),
      make("serves_the_last_first", serves_the_last_first, ""),
      make("ignores_priority", ignores_priority, ""),
      make("lets_small_ones_pass", lets_small_ones_pass, ""),
      make("leaves_a_try_in_the_queue", leaves_a_try_in_the_queue, "busy: nothing was left"),
      make("renews_what_is_not_held", renews_what_is_not_held, ""),
      make("upgrades_without_room", upgrades_without_room, "what is held is within the capacity"),
      make("keeps_an_empty_record", keeps_an_empty_record, "nothing is left without a holder"),
      make("drops_large_waiters", drops_large_waiters, ""),
      make("passes_a_secret_to_a_priority", passes_a_secret_to_a_priority, "a secret is good for"),
      make("passes_the_secret_of_a_waiter", passes_the_secret_of_a_waiter,
           "a secret is of a holder"),
      make("puts_all_behind_the_holder", puts_all_behind_the_holder,
           "the one that the reply names"),
  };
}

}  // namespace kernel_test
