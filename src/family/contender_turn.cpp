#include "family/contender_family_parts.hpp"

#include <algorithm>

#include "kernel/permits.hpp"

namespace holdfast::family {

using namespace store;
using as_of = contender_store::as_of;

namespace {

/// A node may vanish while its queue is read: an operator removed it, or the session ended.
constexpr int max_attempts = 5;

}  // namespace

result<permits_reply> contender_family::acquire(std::string_view name, const permits_command& c) {
  bool replaced = false;
  for (int i = 0; i < max_attempts; ++i) {
    const auto mine = entries_.find(name, c.owner);
    if (mine && mine->held) {
      auto command = c;
      command.verb = permits_verb::renew;
      auto reply = carry_out(name, command);
      if (!reply || reply->outcome == permits_outcome::granted) return reply;
      continue;
    }
    line seen;
    if (!mine || mine->nodes.empty()) {
      const auto in = enter(name, c, seen);
      if (!in) return in.error();
      replaced |= *in;
    } else if (c.wait && mine->nothing_new()) {
      entries_.change(name, c.owner, [&](own_entry& p) {
        p.ends = after(clock_.now(), c.queue_lease_us);
        ++p.quiet;
      });
      return in_line(c, 0);
    }
    auto turn = take_turn(name, c, std::move(seen));
    if (!turn) return std::move(turn.error());
    if (!*turn) {
      if (!c.wait) break;  // a try takes three commands at most
      continue;
    }
    (*turn)->replaced = replaced;
    return std::move(**turn);
  }
  return failure{errc::unavailable,
                 "the queue entry vanished each time it was created: does a program remove such "
                 "entries, or does the session end too soon?"};
}

// Returns true if `replaces` held the lock until this step. `seen` becomes the queue, if the store
// returned it.
result<bool> contender_family::enter(std::string_view name, const permits_command& c, line& seen) {
  if (entries_.find(name, c.owner)) {
    const auto found = find_again(name, c.owner);
    if (!found) return found.error();
    if (*found) return false;
  }
  std::vector<std::string> leaving;
  const auto other = entries_.find(name, c.replaces);
  if (other) leaving = other->nodes;
  const contender who{{}, c.owner, c.kind, c.capacity, c.weight};
  const contender_data says{c.weight, 0, 0, c.lease_us, std::string(c.peer), std::string(c.note)};
  entries_.put(c.owner, {.name = std::string(name),
                         .weight = c.weight,
                         // Keeps the thread from removing it while the request is under way.
                         .ends = forever,
                         .unsure = true});
  if (auto first = give_up_first(name, c.owner); !first) {
    entries_.erase(name, c.owner);
    return std::move(first.error());
  }
  auto in = port_->enter(name, who, says, leaving);
  if (!in) {
    entries_.change(name, c.owner,
                    [&](own_entry& p) { p.ends = after(clock_.now(), c.queue_lease_us); });
    if (!in.error().outcome_unknown) entries_.erase(name, c.owner);
    return std::move(in.error());
  }
  if (other) forget(name, c.replaces);
  entries_.change(name, c.owner, [&](own_entry& p) {
    p.ends = after(clock_.now(), c.queue_lease_us);
    p.nodes = {in->node};
    p.fence = p.made = in->fence;
    p.session = in->session;
    p.unsure = in->repeated;
  });
  seen = std::move(in->line);
  return in->replaced;
}

// The store did not say whether it created the node. Returns true if it did.
result<bool> contender_family::find_again(std::string_view name, const owner_id& owner) {
  const auto all = port_->contenders(name, as_of::settled, nullptr);
  if (!all) return all.error();
  const auto nodes = nodes_of(*all, owner);
  if (nodes.empty()) return false;
  const auto says = port_->read(name, nodes.front(), nullptr);
  if (!says) return says.error();
  if (!*says) return false;
  return entries_.change(name, owner, [&](own_entry& p) {
    p.nodes = nodes;
    p.fence = p.made = (*says)->fence;
    p.session = (*says)->session;
    p.unsure = false;
  });
}

// Returns nothing if this owner's node is gone.
result<std::optional<permits_reply>> contender_family::take_turn(std::string_view name,
                                                                 const permits_command& c,
                                                                 line seen) {
  while (true) {
    const auto mine = entries_.find(name, c.owner);
    if (!mine) return std::optional<permits_reply>{};
    if (is_of_an_ended_session(*mine, *port_)) {
      step_out(name, c.owner);
      return std::optional<permits_reply>{};
    }
    auto all = seen.empty() ? port_->contenders(name, as_of::seen, nullptr)
                            : result<line>(std::exchange(seen, {}));
    if (!all) return std::move(all.error());
    fit(*all, c.capacity);
    const std::size_t me = index_of(*all, mine->nodes.front());
    if (me == all->size()) {
      forget(name, c.owner);
      return std::optional<permits_reply>{};
    }
    auto clashes = clash(name, c, *all, me);
    if (!clashes || *clashes) return clashes;
    if (is_record(all->front())) continue;  // the latch is over, and its record removed by now
    for (bool again = true; again;) {
      for (contender& other : *all) {
        const auto known = mine->watched.find(other.node);
        if (known != mine->watched.end()) other.weight = std::min(other.weight, known->second);
      }
      const auto d = decide(*all, me, c.capacity);
      if (d.mine) return granted(name, c);
      const auto changed = look_ahead(name, c, *all, d);
      if (!changed) return changed.error();
      if (!*changed) return not_granted(name, c, *all, d);
      again = !all->empty();
    }
  }
}

// Checks for a clash: the name is in use as another kind or with another capacity.
result<std::optional<permits_reply>> contender_family::clash(std::string_view name,
                                                             const permits_command& c,
                                                             const line& all, std::size_t me) {
  const contender* const first = first_of_ours(all);
  if (first == &all[me] || (first->kind == c.kind && first->capacity == c.capacity)) {
    return std::optional<permits_reply>{};
  }
  if (is_record(*first)) {
    const auto over = latch_.make_way(name);
    if (!over) return over.error();
    if (*over) return std::optional<permits_reply>{};
  }
  permits_reply reply;
  const bool kind = first->kind != c.kind;
  reply.outcome = kind ? permits_outcome::kind_mismatch : permits_outcome::capacity_mismatch;
  reply.found.kind = first->kind;
  reply.found.capacity = first->capacity;
  step_out(name, c.owner);
  return std::optional(std::move(reply));
}

// Watches the contenders ahead, and reads their data with the same request: one may need less than
// when it entered. Returns true if that changes the decision; an empty `all` then means that the
// queue has to be read anew: a node is gone, or was created anew under the same name, and is now
// behind this one.
result<bool> contender_family::look_ahead(std::string_view name, const permits_command& c,
                                          line& all, const decision& d) {
  if (!c.wait && c.kind != store::kind::shared_mutex) return false;
  const auto mine = entries_.find(name, c.owner);
  if (!mine) return all.clear(), true;
  for (const std::size_t w : d.watch) {
    contender& other = all[w];
    if (mine->watched.contains(other.node)) continue;
    if (c.wait) {
      entries_.change(name, c.owner, [&](own_entry& p) {
        p.watched[other.node] = other.weight;
        p.looks[other.node].begins(clock_.now());
      });
    }
    const auto read = [&](contender_store::alarm call) {
      return port_->read(name, other.node, std::move(call));
    };
    const auto is_there = [](const auto& said) { return said && *said; };
    const auto says =
        c.wait ? watches_.read(name, other.node, c.owner, read, is_there) : read(nullptr);
    if (!is_there(says)) {
      entries_.change(name, c.owner, [&](own_entry& p) { p.watched.erase(other.node); });
      if (!says) return says.error();
      return all.clear(), true;
    }
    if ((*says)->fence > mine->fence) {
      entries_.forget_watched(name, c.owner, other.node);
      return all.clear(), true;
    }
    const std::uint32_t now = (*says)->weight;
    entries_.change(name, c.owner, [&](own_entry& p) {
      if (c.wait) p.looks[other.node].ended(clock_.now(), std::to_string(now));
      const auto at = p.watched.find(other.node);
      if (at != p.watched.end() && now != 0) at->second = std::min(at->second, now);
    });
    if (now == 0 || now >= other.weight) continue;
    other.weight = now;
    return true;
  }
  return false;
}

result<std::optional<permits_reply>> contender_family::granted(std::string_view name,
                                                               const permits_command& c) {
  entries_.forget_watched(name, c.owner);
  entries_.change(name, c.owner, [&](own_entry& p) {
    p.held = true;
    p.waits_for.clear();
    p.ends = after(clock_.now(), c.queue_lease_us);
  });
  const auto entered = entries_.find(name, c.owner);
  if (!entered) return std::optional<permits_reply>{};
  // A waiter that waited for long knows that its turn has come, but not whether its session is
  // still alive.
  const auto lease =
      std::min<std::chrono::nanoseconds>(std::chrono::microseconds(c.lease_us), port_->safe_span());
  if (port_->safe_until(entered->session) < clock_.now() + lease / 2) {
    auto command = c;
    command.verb = permits_verb::renew;
    auto sure = carry_out(name, command);
    if (!sure) return std::move(sure.error());
    if (sure->outcome != permits_outcome::granted) return std::optional<permits_reply>{};
  }
  if (c.lingers) {
    own_entries::one_job look(1, look_for_arrivals(name, c.owner));
    if (!see_arrivals(look.front())) try_again(std::move(look));
  }
  const auto mine = entries_.find(name, c.owner);
  if (!mine) return std::optional<permits_reply>{};
  auto reply = holds(*mine, c);
  if (reply.outcome != permits_outcome::granted) return std::optional<permits_reply>{};
  return std::optional(std::move(reply));
}

result<std::optional<permits_reply>> contender_family::not_granted(std::string_view name,
                                                                   const permits_command& c,
                                                                   const line& all,
                                                                   const decision& d) {
  if (!c.wait) {
    step_out(name, c.owner);
    auto reply = in_line(c, d.position);
    reply.outcome = permits_outcome::busy;
    return std::optional(std::move(reply));
  }
  entries_.change(name, c.owner, [&](own_entry& p) {
    p.ends = after(clock_.now(), c.queue_lease_us);
    p.quiet = 0;
    p.waits_for.clear();
    for (const std::size_t w : d.watch) p.waits_for.push_back(all[w].node);
    std::erase_if(p.looks, [&](const auto& at) {
      return std::find(p.waits_for.begin(), p.waits_for.end(), at.first) == p.waits_for.end();
    });
  });
  return std::optional(in_line(c, d.position));
}

permits_reply contender_family::in_line(const permits_command& c, std::uint32_t position) {
  return {.outcome = permits_outcome::queued,
          .now_at = micros(clock_.now()),
          .retry_after_us = std::min<std::int64_t>(kernel::retry_after_us, c.queue_lease_us / 3),
          .position = std::max(position, 1U)};
}

void contender_family::has_changed(std::string_view name, const owner_id& owner,
                                   std::string_view watched) {
  boot_time at{};
  entries_.change(name, owner, [&](own_entry& p) {
    p.watched.erase(std::string(watched));
    const auto last = p.looks.find(watched);
    if (last == p.looks.end()) return;
    at = last->second.next();
    last->second.called(clock_.now());
  });
  if (at <= clock_.now()) return call(name, owner);
  entries_.later({own_entries::job::kind::call, std::string(name), owner, {}, false, at});
}

void contender_family::call(std::string_view name, const owner_id& owner) {
  inbox_.put({notification_kind::granted, std::string(name), owner, 0, 0, {}});
}

}  // namespace holdfast::family
