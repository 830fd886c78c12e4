#include "family/contender_family.hpp"

#include <algorithm>
#include <atomic>
#include <tuple>

#include "family/contender_family_parts.hpp"
#include "family/contender_view.hpp"
#include "kernel/permits.hpp"

namespace holdfast::family {

using namespace std::chrono_literals;
using namespace store;
using as_of = contender_store::as_of;

namespace {

/// The pause before the removal of a node is retried.
constexpr auto give_up_again = 1s;

std::string nodes_in(const line& all) {
  std::string nodes;
  for (const contender& one : all) (nodes += one.node) += '\n';
  return nodes;
}

}  // namespace

result<permits_reply> contender_family::carry_out(std::string_view name, const permits_command& c) {
  switch (c.verb) {
    case permits_verb::acquire:
      return acquire(name, c);
    case permits_verb::renew: {
      const named_command one{name, c};
      return std::move(execute_batch({&one, 1}).front());
    }
    case permits_verb::release:
      return release(name, c);
    case permits_verb::resize:
      return resize(name, c);
    case permits_verb::evict:
      return evict(*port_, name, c.owner);
    case permits_verb::inspect:
      return inspect(*port_, name, clock_.now());
    case permits_verb::notify:
      break;  // refused at construction
  }
  return failure{errc::internal, "no such command"};
}

// The holder relies on the lease until then, and no longer: if it does not renew, its node is
// removed then.
permits_reply contender_family::holds(const own_entry& mine, const permits_command& c) {
  const boot_time now = clock_.now();
  const boot_time until = std::clamp(port_->safe_until(mine.session), now, after(now, c.lease_us));
  // The lease may have ended since `mine` was read, and another thread may be about to remove the
  // node.
  const bool there = entries_.change(mine.name, c.owner, [&](own_entry& p) { p.ends = until; });
  if (!there) return {.outcome = permits_outcome::absent, .now_at = micros(now)};
  return {.outcome = permits_outcome::granted,
          .fence = mine.fence,
          .expires_at = micros(until),
          .now_at = micros(now)};
}

std::vector<result<permits_reply>> contender_family::execute_batch(
    std::span<const named_command> batch) {
  std::vector<result<permits_reply>> replies(batch.size(), permits_reply{});
  std::vector<std::size_t> renewals;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (batch[i].command.verb == permits_verb::renew)
      renewals.push_back(i);
    else
      replies[i] = permits(batch[i].name, batch[i].command);
  }
  while (!renewals.empty()) renewals = renew(batch, renewals, replies);
  for (auto& r : replies) {
    if (r && r->now_at == 0) r->now_at = micros(clock_.now());
  }
  return replies;
}

// Returns the renewals to repeat: their owners gave up the node that was asked for (by a downgrade,
// for example) before the answer came.
std::vector<std::size_t> contender_family::renew(std::span<const named_command> batch,
                                                 std::span<const std::size_t> renewals,
                                                 std::span<result<permits_reply>> replies) {
  std::vector<contender_store::node_of> asked;
  std::vector<std::size_t> whose;
  for (const std::size_t i : renewals) {
    const auto& [name, c] = batch[i];
    const auto mine = entries_.find(name, c.owner);
    const bool ended = mine && is_of_an_ended_session(*mine, *port_);
    if (ended) step_out(name, c.owner);
    if (mine && !ended && !mine->nodes.empty()) {
      asked.push_back({name, mine->nodes.back()});
      whose.push_back(i);
    } else {
      replies[i]->outcome = permits_outcome::absent;
    }
  }
  const auto there = port_->confirm(asked);
  std::vector<std::size_t> again;
  for (std::size_t i = 0; i < whose.size(); ++i) {
    const auto& [name, c] = batch[whose[i]];
    if (!there[i]) {
      replies[whose[i]] = there[i].error();
    } else if (!*there[i] && has_moved_on(name, c.owner, asked[i].node)) {
      again.push_back(whose[i]);
    } else {
      if (!*there[i]) forget(name, c.owner);
      replies[whose[i]] = kept(name, c);
    }
  }
  return again;
}

bool contender_family::has_moved_on(std::string_view name, const owner_id& owner,
                                    const std::string& from) const {
  const auto mine = entries_.find(name, owner);
  return mine && !mine->nodes.empty() && mine->nodes.back() != from;
}

permits_reply contender_family::kept(std::string_view name, const permits_command& c) {
  const auto mine = entries_.find(name, c.owner);
  if (mine && mine->held) return holds(*mine, c);
  const auto lasts = std::max(c.queue_lease_us, kernel::retry_after_us);
  entries_.change(name, c.owner, [&](own_entry& p) { p.ends = after(clock_.now(), lasts); });
  permits_reply reply = in_line(c, 1);
  reply.retry_after_us = kernel::retry_after_us;
  if (!mine) reply.outcome = permits_outcome::absent;
  return reply;
}

result<standing> contender_family::standing_of(std::string_view name, const owner_id& owner) {
  const auto mine = entries_.find(name, owner);
  if (!mine || !mine->held || is_of_an_ended_session(*mine, *port_)) {
    return failure{errc::lost, "the store no longer has the entry of this lease"};
  }
  return standing{port_->address(name, mine->nodes.back()), mine->made};
}

// Forgets a node that is gone. But a request under way may still create it again, and one of two
// nodes may be left: the thread removes those later.
void contender_family::forget(std::string_view name, const owner_id& owner) {
  const auto mine = entries_.find(name, owner);
  entries_.erase(name, owner);
  if (!mine || (!mine->unsure && mine->nodes.size() < 2)) return;
  give_up_later(name, owner, mine->nodes, mine->unsure, clock_.now());
}

void contender_family::give_up_later(std::string_view name, const owner_id& owner,
                                     std::vector<std::string> nodes, bool unsure, boot_time at) {
  entries_.later(
      {own_entries::job::kind::give_up, std::string(name), owner, std::move(nodes), unsure, at});
}

void contender_family::try_again(own_entries::one_job job) noexcept {
  job.front().at = clock_.now() + give_up_again;
  entries_.later(std::move(job));
}

// A removal that comes later would also remove a node that is created anew.
status contender_family::give_up_first(std::string_view name, const owner_id& owner) {
  auto job = entries_.take_over(name, owner);
  if (!job) return done{};
  auto gone = put_away(name, owner, job->nodes, job->unsure);
  if (gone) return done{};
  job->unsure = job->unsure || gone.error().outcome_unknown;
  job->at = clock_.now() + give_up_again;
  entries_.later(std::move(*job));
  return failure{gone.error().code, std::move(gone.error().what)};
}

// Removes the node at once, so that the owner does not find its old node ahead of it when it enters
// again, and so that a try leaves nothing. The store's answer so far stays valid even if this
// removal fails. Without memory the entry stays, and is removed when it ends.
void contender_family::step_out(std::string_view name, const owner_id& owner) {
  const auto mine = entries_.find(name, owner);
  if (!mine) return;
  if (const auto gone = put_away(name, owner, mine->nodes, mine->unsure); !gone) {
    const bool unsure = mine->unsure || gone.error().outcome_unknown;
    give_up_later(name, owner, mine->nodes, unsure, clock_.now() + give_up_again);
  }
  entries_.erase(name, owner);
}

result<bool> contender_family::put_away(std::string_view name, const owner_id& owner,
                                        std::vector<std::string> nodes, bool unsure) {
  if (unsure) {
    const auto all = port_->contenders(name, as_of::settled, nullptr);
    if (!all) return all.error();
    nodes = nodes_of(*all, owner);
  }
  if (nodes.empty()) return false;
  return leave(name, owner, nodes);
}

// A removal without an answer may take effect later. It must not remove a node that is created
// anew, so the entry is marked.
result<bool> contender_family::leave(std::string_view name, const owner_id& owner,
                                     const std::vector<std::string>& nodes) {
  auto left = port_->leave(name, nodes);
  if (!left && left.error().outcome_unknown)
    entries_.change(name, owner, [](own_entry& p) { p.unsure = true; });
  return left;
}

result<permits_reply> contender_family::release(std::string_view name, const permits_command& c) {
  permits_reply reply{.outcome = permits_outcome::absent};
  const auto mine = entries_.find(name, c.owner);
  // The thread may be about to remove an ended lease; no other owner gets the lock before that.
  if (!mine) {
    auto gone = give_up_first(name, c.owner);
    return gone ? result<permits_reply>(reply) : std::move(gone.error());
  }
  const auto left = put_away(name, c.owner, mine->nodes, mine->unsure);
  if (!left) return left.error();
  entries_.erase(name, c.owner);
  if (*left) reply.outcome = permits_outcome::done;
  return reply;
}

own_entries::job contender_family::look_for_arrivals(std::string_view name, const owner_id& owner) {
  return {own_entries::job::kind::see_arrivals, std::string(name), owner};
}

// Notifies the session of an idle lock that a waiter has come: now if there is one, or when one
// arrives. A store that is away calls the alarm because it cannot watch, and also fails the
// request. The next look then follows after the pause for failures, and not immediately, over and
// over; this holds whichever of the two comes first.
bool contender_family::see_arrivals(const own_entries::job& look) {
  const auto& [name, owner] = std::tie(look.name, look.owner);
  const auto mine = entries_.find(name, owner);
  if (!mine || !mine->held) return true;
  enum class step { asked, answered, failed, called };
  struct next_look {
    own_entries::one_job job;
    std::atomic<step> last{step::asked};
  };
  const auto next = std::make_shared<next_look>();
  next->job.push_back(look_for_arrivals(name, owner));
  // Called by a thread of the store, which must not get an exception.
  auto all = port_->contenders(name, as_of::seen, [this, next]() noexcept {
    if (next->last.exchange(step::called) != step::answered) return;
    next->job.front().looks.called(clock_.now());
    entries_.later(std::move(next->job));
  });
  if (all) {
    auto& planned = next->job.front();
    planned.looks = look.looks;
    planned.looks.ended(clock_.now(), nodes_in(*all));
    planned.at = planned.looks.next();
  }
  const step before = next->last.exchange(all ? step::answered : step::failed);
  if (!all) return false;
  if (before == step::called) entries_.later(std::move(next->job));
  std::uint32_t capacity = 1;
  if (const contender* const first = first_of_ours(*all)) capacity = first->capacity;
  fit(*all, capacity);
  if (all->empty() || decide(*all, all->size() - 1, capacity).mine) return true;
  inbox_.put({notification_kind::wanted, std::string(name), owner, mine->fence, 0, {}});
  return true;
}

// Removes latches that are over while it lists the names. A name whose record cannot be read counts
// as in use.
result<std::vector<std::string>> contender_family::names() {
  auto all = port_->names();
  if (!all) return std::move(all.error());
  std::vector<std::string> used;
  for (auto& [name, only_record] : *all) {
    const auto over = only_record ? latch_.forget_if_over(name) : result<bool>(false);
    if (!over && is_retryable(over.error().code)) return over.error();
    if (!over || !*over) used.push_back(std::move(name));
  }
  return used;
}

void contender_family::tidy() {
  for (auto job = entries_.next(); !job.empty(); job = entries_.next()) {
    bool over = false;
    try {
      over = tidy_up(job.front());
    } catch (...) {
      over = false;  // no memory: as if the store had not answered
    }
    if (!over) try_again(std::move(job));
  }
}

// Returns false if the job has to be retried.
bool contender_family::tidy_up(own_entries::job& job) {
  if (job.what == own_entries::job::kind::see_arrivals) return see_arrivals(job);
  if (job.what == own_entries::job::kind::call) return call(job.name, job.owner), true;
  const auto gone = put_away(job.name, job.owner, job.nodes, job.unsure);
  if (!gone) job.unsure = job.unsure || gone.error().outcome_unknown;
  return gone.ok();
}

std::unique_ptr<session_store> over(std::unique_ptr<contender_store> port, clock& on) {
  return std::make_unique<contender_family>(std::move(port), on);
}

}  // namespace holdfast::family
