#include "kernel/permits_rules.hpp"

#include <algorithm>
#include <set>
#include <sstream>

#include "kernel/permits.hpp"

namespace kernel_test {

using namespace holdfast::store;

namespace {

template <class List>
auto find(const List& list, const owner_id& owner) -> decltype(list.data()) {
  for (const auto& x : list) {
    if (x.owner == owner) return &x;
  }
  return nullptr;
}

std::uint64_t held_weight(const permits_record& r) {
  std::uint64_t sum = 0;
  for (const auto& h : r.holders) sum += h.weight;
  return sum;
}

bool mismatch(const permits_reply& reply) {
  return reply.outcome == permits_outcome::kind_mismatch ||
         reply.outcome == permits_outcome::capacity_mismatch;
}

}  // namespace

apply_function real_kernel() {
  return [](permits_record& r, const permits_command& c, const moment& now) {
    return holdfast::kernel::apply(r, c, now);
  };
}

struct permits_rules::situation {
  const permits_record& before;
  const permits_command& command;
  const moment& now;
  const permits_record& after;
  const permits_reply& reply;

  bool was_held(const owner_id& owner) const {
    const auto* const h = find(before.holders, owner);
    return h != nullptr && h->expires_at > now.now_at && !leaves(owner);
  }
  bool was_queued(const owner_id& owner) const {
    const auto* const w = find(before.queue, owner);
    return w != nullptr && w->expires_at > now.now_at && !leaves(owner);
  }
  bool is_held(const owner_id& owner) const { return find(after.holders, owner) != nullptr; }
  bool is_queued(const owner_id& owner) const { return find(after.queue, owner) != nullptr; }
  std::ptrdiff_t told(notification_kind what, const owner_id& owner = {}) const {
    return std::count_if(reply.tell.begin(), reply.tell.end(), [&](const notification& n) {
      return n.what == what && (!owner || n.owner == owner);
    });
  }
  bool decided() const { return command.verb != permits_verb::inspect && !mismatch(reply); }

 private:
  bool leaves(const owner_id& owner) const {
    return decided() && command.replaces && owner == command.replaces;
  }
};

permits_reply permits_rules::step(const permits_command& c, const moment& now) {
  const permits_record before = record_;
  permits_reply reply = apply_(record_, c, now);
  const situation s{before, c, now, record_, reply};
  check_state(s);
  check_fences(s);
  check_grants(s);
  check_secrets(s);
  check_wanted(s);
  check_order(s);
  check_others(s);
  check_reply(s);
  check_repetition(s);
  return reply;
}

void permits_rules::expect(bool kept, const situation& s, const char* rule) {
  if (kept) return;
  broken_.push_back(
      std::string(rule) + "\n  before " + describe(s.before) + "\n  " + describe(s.command) +
      " at " + std::to_string(s.now.now_at) + "\n  after  " + describe(s.after) +
      "\n  reply  outcome " + std::to_string(static_cast<int>(s.reply.outcome)) + " fence " +
      std::to_string(s.reply.fence) + " tells " + std::to_string(s.reply.tell.size()));
}

void permits_rules::check_state(const situation& s) {
  const auto& r = s.after;
  std::set<owner_id> owners;
  for (const auto& h : r.holders) {
    expect(owners.insert(h.owner).second, s, "an owner is there once");
    expect(h.expires_at > s.now.now_at, s, "a holder whose lease has ended is gone");
  }
  for (const auto& w : r.queue) {
    expect(owners.insert(w.owner).second, s, "a waiter is not a holder, and waits once");
    expect(w.expires_at > s.now.now_at, s, "a waiter whose place has ended is gone");
    for (const auto& other : r.queue) {
      expect(w.peer.empty() || w.peer != other.peer || w.expires_at == other.expires_at, s,
             "the places of a session end together");
    }
  }
  expect(held_weight(r) <= r.capacity, s, "what is held is within the capacity");
  if (!s.decided()) return;
  expect(r.queue.empty() || held_weight(r) + r.queue.front().weight > r.capacity, s,
         "no waiter waits while there is room for the head of the queue");
  expect(!owners.empty() || r.capacity == 0, s, "nothing is left without a holder or waiter");
}

void permits_rules::check_fences(const situation& s) {
  std::uint64_t greatest = greatest_fence_;
  std::set<std::uint64_t> fences;
  for (const auto& h : s.after.holders) {
    expect(fences.insert(h.fence).second, s, "each hold has a fence of its own");
    const auto* const old = find(s.before.holders, h.owner);
    const bool stayed = s.was_held(h.owner);
    if (stayed && h.weight <= old->weight) {
      const bool asks = s.command.verb == permits_verb::acquire && s.command.owner == h.owner &&
                        s.reply.outcome == permits_outcome::granted;
      const auto learnt = asks ? s.command.fence_at_least : 0;
      expect(h.fence == std::max(old->fence, learnt), s,
             "a fence stays the same while it is held, but for a greater one that it learns");
    } else {
      expect(h.fence > greatest_fence_, s, "a new hold has a greater fence than any before it");
    }
    greatest = std::max(greatest, h.fence);
  }
  greatest_fence_ = greatest;
  expect(s.after.holders.empty() || s.after.last_fence >= greatest, s, "the last fence is kept");
}

void permits_rules::check_grants(const situation& s) {
  const auto& c = s.command;
  std::ptrdiff_t told = 0;
  for (const auto& h : s.after.holders) {
    if (s.was_held(h.owner)) continue;
    const bool own = h.owner == c.owner;
    expect(s.was_queued(h.owner) || (own && c.verb == permits_verb::acquire), s,
           "only a waiter or the caller is granted something");
    if (own) continue;
    expect(h.expires_at <= s.now.now_at + holdfast::kernel::claim_us, s,
           "a grant that is not claimed yet ends soon");
    const bool said =
        std::any_of(s.reply.tell.begin(), s.reply.tell.end(), [&](const notification& n) {
          return n.what == notification_kind::granted && n.owner == h.owner && n.fence == h.fence &&
                 n.expires_at == h.expires_at && n.peer == h.peer;
        });
    expect(said, s, "each new holder is notified");
    ++told;
  }
  expect(told == s.told(notification_kind::granted), s, "only new holders are notified of a grant");
}

// Others may read a secret as soon as it is sent, and send it to any waiter. So no reply may have
// told another waiter that it is behind the holder of this secret.
void permits_rules::check_secrets(const situation& s) {
  for (const auto& n : s.reply.tell) {
    if (!n.secret) continue;
    const bool passed = n.what == notification_kind::granted && n.secret == s.command.secret;
    expect(passed && passes_secrets(s.before.kind), s,
           "only a grant of what one holds has a secret");
    const auto leaving = secret_of(n.secret);  // and back
    expect(find(s.before.holders, leaving) != nullptr && !s.is_held(leaving), s,
           "a secret is of a holder that has left");
    for (const auto& w : s.before.queue) {
      const auto told = behind_.find(w.owner);
      const bool takes_it = told != behind_.end() && told->second == leaving;
      expect(!takes_it || !s.was_queued(w.owner) || w.owner == n.owner, s,
             "a secret is good for the one that it is sent to only");
    }
  }
  learn_predecessor(s);
}

void permits_rules::learn_predecessor(const situation& s) {
  std::erase_if(behind_, [&](const auto& told) {
    return !s.is_held(told.second) && !s.is_queued(told.second);
  });
  const auto& [before, c, now, after, reply] = s;
  if (c.verb != permits_verb::acquire || reply.outcome != permits_outcome::queued) return;
  behind_[c.owner] = reply.behind;
  const auto* const mine = find(after.queue, c.owner);
  const bool is_told = passes_secrets(after.kind) && mine && mine->priority == 0;
  expect(is_told == static_cast<bool>(reply.behind), s,
         "a waiter without a priority, for a lock of one holder, learns which one is before it");
  if (!is_told) return;
  const auto at = mine - after.queue.data();
  const auto& there =
      at == 0 ? after.holders.front().owner : after.queue[static_cast<std::size_t>(at) - 1].owner;
  expect(there == reply.behind, s, "the one that the reply names is directly before it");
}

// A holder that may keep it idle learns of the first waiter when that one polls, and at its grant.
void permits_rules::check_wanted(const situation& s) {
  const bool looks = s.decided() && s.command.verb == permits_verb::acquire &&
                     !s.is_held(s.command.owner) && s.reply.position == 1;
  const bool left_waiting = s.told(notification_kind::granted) > 0 && !s.after.queue.empty();
  for (const auto& n : s.reply.tell) {
    if (n.what != notification_kind::wanted) continue;
    const auto* const h = find(s.after.holders, n.owner);
    expect(h != nullptr && h->lingers && h->peer == n.peer && h->fence == n.fence, s,
           "only a holder that lingers is notified that the lock is wanted");
  }
  for (const auto& h : s.after.holders) {
    if (!h.lingers || !(left_waiting || (looks && s.was_held(h.owner)))) continue;
    expect(s.told(notification_kind::wanted, h.owner) > 0, s,
           "a holder that lingers is notified of a waiter");
  }
}

// Each arrival takes a number; waiters of the same priority are served in that order.
void permits_rules::check_order(const situation& s) {
  const auto& c = s.command;
  if (c.verb == permits_verb::acquire && s.decided() && !s.was_queued(c.owner)) {
    arrival_[c.owner] = ++arrivals_;
  }
  const auto ahead = [&](const waiter& a, const waiter& b) {
    if (a.priority != b.priority) return a.priority > b.priority;
    return arrival_[a.owner] < arrival_[b.owner];
  };
  const auto& queue = s.after.queue;
  expect(std::is_sorted(queue.begin(), queue.end(), ahead), s,
         "the queue is in the order of priority, then of arrival");
  for (const auto& w : s.before.queue) {
    const bool served = s.is_held(w.owner) && s.was_queued(w.owner);
    if (!served) continue;
    for (const auto& left : queue) expect(ahead(w, left), s, "no waiter is served before the head");
  }
  if (c.verb != permits_verb::acquire || s.was_held(c.owner) || s.was_queued(c.owner)) return;
  if (!s.is_held(c.owner)) return;
  for (const auto& left : queue)
    expect(left.priority < c.priority, s, "no arrival passes the queue");
}

void permits_rules::check_others(const situation& s) {
  const auto& c = s.command;
  const bool evicts_all = c.verb == permits_verb::evict && !c.owner;
  for (const auto& h : s.before.holders) {
    if (h.owner == c.owner || !s.was_held(h.owner) || evicts_all) continue;
    const auto* const now = find(s.after.holders, h.owner);
    expect(now != nullptr && *now == h, s, "a command changes nothing of other holders");
  }
  for (auto w : s.before.queue) {
    if (w.owner == c.owner || !s.was_queued(w.owner)) continue;
    const auto* const now = find(s.after.queue, w.owner);
    const bool of_one = !w.peer.empty() && w.peer == c.peer;
    if (now != nullptr && of_one) w.expires_at = now->expires_at;
    expect(s.is_held(w.owner) || (now != nullptr && *now == w), s,
           "a command changes nothing of other waiters, except that their session lives on");
  }
  if (s.decided()) return;
  expect(s.after.holders.size() <= s.before.holders.size() &&
             s.after.queue.size() <= s.before.queue.size() && s.reply.tell.empty(),
         s, "a look, and a mismatch, change nothing");
}

void permits_rules::check_reply(const situation& s) {
  const auto& [before, c, now, after, reply] = s;
  expect(reply.now_at == now.now_at, s, "the reply has the store's time");
  switch (reply.outcome) {
    case permits_outcome::granted: {
      const auto* const mine = find(after.holders, c.owner);
      expect(mine && mine->fence == reply.fence && mine->expires_at == reply.expires_at, s,
             "granted: it is held as the reply says");
      break;
    }
    case permits_outcome::queued:
      expect(reply.position >= 1 && reply.position <= after.queue.size() &&
                 after.queue[reply.position - 1].owner == c.owner,
             s, "queued: it waits at the place that the reply says");
      expect(reply.retry_after_us > 0 && reply.retry_after_us <= 1'000'000, s,
             "queued: it looks again within a second");
      break;
    case permits_outcome::busy:
      expect(!s.is_queued(c.owner) && s.is_held(c.owner) == (c.verb == permits_verb::resize), s,
             "busy: nothing was left behind");
      break;
    case permits_outcome::absent:
      expect(!s.is_held(c.owner) && !(s.is_queued(c.owner) && c.verb == permits_verb::renew), s,
             "absent: it neither holds nor waits");
      break;
    case permits_outcome::done:
    case permits_outcome::kind_mismatch:
    case permits_outcome::capacity_mismatch:
      break;
  }
  if (c.verb == permits_verb::release) {
    expect(!s.is_held(c.owner) && !s.is_queued(c.owner), s,
           "a release removes the holder or waiter");
  }
  if (c.verb == permits_verb::renew && s.was_held(c.owner)) {
    expect(reply.outcome == permits_outcome::granted && reply.expires_at == now.now_at + c.lease_us,
           s, "a holder's renewal lasts as long as it asked for");
  }
  if (c.verb == permits_verb::acquire && s.decided() && (s.was_held(c.owner) || c.wait)) {
    expect(s.is_held(c.owner) || s.is_queued(c.owner), s, "a caller that waits is not forgotten");
  }
}

// The reply was lost, and the command is sent again. (Nameless eviction is another one each time.)
void permits_rules::check_repetition(const situation& s) {
  if (s.command.verb == permits_verb::evict && !s.command.owner) return;
  permits_record again = s.after;
  const permits_reply second = apply_(again, s.command, s.now);
  const bool leaves =
      s.command.verb == permits_verb::release || s.command.verb == permits_verb::evict;
  const bool only_wanted =
      std::all_of(second.tell.begin(), second.tell.end(),
                  [](const notification& n) { return n.what == notification_kind::wanted; });
  expect(again == s.after && only_wanted, s, "repeating a command changes nothing more");
  expect(leaves || (second.outcome == s.reply.outcome && second.fence == s.reply.fence), s,
         "repeating a command gives the same answer");
}

std::string describe(const permits_command& c) {
  constexpr const char* verbs[] = {"acquire", "renew", "release", "resize", "evict", "inspect"};
  std::ostringstream out;
  out << verbs[static_cast<int>(c.verb)] << " owner " << c.owner.low << " weight " << c.weight
      << " capacity " << c.capacity << " priority " << c.priority << (c.wait ? " waits" : "")
      << " lease " << c.lease_us << " place " << c.queue_lease_us;
  if (c.replaces) out << " instead of " << c.replaces.low;
  return out.str();
}

std::string describe(const permits_record& r) {
  std::ostringstream out;
  out << "capacity " << r.capacity << " last fence " << r.last_fence << " held by {";
  for (const auto& h : r.holders) {
    out << " " << h.owner.low << "x" << h.weight << " fence " << h.fence << " until "
        << h.expires_at;
  }
  out << " } queue {";
  for (const auto& w : r.queue) {
    out << " " << w.owner.low << "x" << w.weight << " priority " << w.priority << " until "
        << w.expires_at;
  }
  out << " }";
  return out.str();
}

}  // namespace kernel_test
