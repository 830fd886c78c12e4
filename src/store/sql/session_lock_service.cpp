#include "store/sql/session_lock_service.hpp"

#include <algorithm>
#include <holdfast/store/micros.hpp>
#include <map>
#include <set>
#include <utility>

#include "store/sql/session_view.hpp"

namespace holdfast::store::sql {

namespace {

/// The pause between two polls: of a waiter that is not queued at the server; and of a queued one,
/// in case a notification is lost.
constexpr std::int64_t without_place_us = 50'000;
constexpr std::int64_t with_place_us = 1'000'000;
/// The server is asked again when this fraction (1/8) of the time has passed for which a hold
/// counts.
constexpr int heard_of_lately = 8;

permits_reply reply_with(permits_outcome outcome) { return {.outcome = outcome}; }

}  // namespace

// ---- commands

result<permits_reply> session_lock_service::permits(std::string_view name,
                                                    const permits_command& c) {
  return told(carry_out(name, c));
}

// Completes the reply; called after each command.
result<permits_reply> session_lock_service::told(result<permits_reply> reply) {
  table_.forget_what_broke();
  if (reply && reply->now_at == 0) reply->now_at = micros(clock_.now());
  return reply;
}

result<permits_reply> session_lock_service::carry_out(std::string_view name,
                                                      const permits_command& c) {
  switch (c.verb) {
    case permits_verb::acquire:
      return acquire(name, c);
    case permits_verb::renew: {
      const named_command one{name, c};
      return std::move(execute_batch({&one, 1}).front());
    }
    case permits_verb::release: {
      auto* const mine = table_.find(name, c.owner);
      if (mine == nullptr) return reply_with(permits_outcome::absent);
      const auto was = table_.give_up(*mine);
      if (!was) return was.error();
      return reply_with(*was ? permits_outcome::done : permits_outcome::absent);
    }
    case permits_verb::resize:
      return resize(name, c);
    case permits_verb::evict:
      return evict(name, c.owner);
    case permits_verb::inspect:
      return inspect(name);
    case permits_verb::notify:
      break;  // refused at construction
  }
  return failure{errc::internal, "no such command"};
}

// The hold of another session ends only with its connection.
result<permits_reply> session_lock_service::evict(std::string_view name, const owner_id& owner) {
  auto* const mine = table_.find(name, owner);
  if (mine == nullptr) {
    return failure{errc::unsupported,
                   "a lock of mode=session ends with the connection that holds it, together with "
                   "all other locks of that connection: end the connection at the server"};
  }
  const auto was = table_.give_up(*mine);
  if (!was) return was.error();
  permits_reply reply = reply_with(permits_outcome::done);
  reply.position = 1;
  return reply;
}

std::vector<result<permits_reply>> session_lock_service::execute_batch(
    std::span<const named_command> batch) {
  std::map<lock_link*, boot_time> asked;
  for (const auto& [name, c] : batch) {
    auto* const mine = table_.find(name, c.owner);
    if (c.verb != permits_verb::renew || mine == nullptr || !mine->held) continue;
    const auto [of_link, first] = asked.try_emplace(&table_.link_of(*mine));
    if (first) {
      table_.ask_after(*mine);
      of_link->second = mine->heard;
    }
    mine->heard = std::max(mine->heard, of_link->second);
  }
  table_.forget_what_broke();
  std::vector<result<permits_reply>> replies;
  for (const auto& [name, c] : batch) {
    replies.push_back(told(c.verb == permits_verb::renew ? confirm(name, c) : carry_out(name, c)));
  }
  return replies;
}

permits_reply session_lock_service::confirm(std::string_view name, const permits_command& c) {
  auto* const mine = table_.find(name, c.owner);
  if (mine == nullptr) return reply_with(permits_outcome::absent);
  if (!mine->held) return queued(*mine, c);
  return holds(*mine, c.lease_us);
}

// Counts from the time when the server began to count the connection's silence, not from now: this
// process may have been stopped in between.
permits_reply session_lock_service::granted(const session_lock_entry& s,
                                            std::int64_t lease_us) const {
  const auto now = clock_.now();
  const auto sure_us = std::chrono::duration_cast<std::chrono::microseconds>(sure_for_).count();
  permits_reply r = reply_with(permits_outcome::granted);
  r.fence = s.fence;
  r.now_at = micros(now);
  r.expires_at = r.now_at + std::min(lease_us, micros(s.heard) + sure_us - r.now_at);
  return r;
}

// After the time that the holder is told, nobody relies on the hold any more.
permits_reply session_lock_service::holds(session_lock_entry& s, std::int64_t lease_us) {
  auto r = granted(s, lease_us);
  ends_at(s, boot_time(std::chrono::microseconds(r.expires_at)));
  return r;
}

permits_reply session_lock_service::queued(session_lock_entry& s, const permits_command& c) {
  ends_at(s, after(clock_.now(), c.queue_lease_us));
  permits_reply r = reply_with(permits_outcome::queued);
  r.position = 1;
  r.retry_after_us = s.own ? with_place_us : without_place_us;
  return r;
}

void session_lock_service::ends_at(session_lock_entry& s, boot_time t) {
  s.ends = t;
  first_end_ = std::min(first_end_, t);
}

// ---- taking

result<permits_reply> session_lock_service::acquire(std::string_view name,
                                                    const permits_command& c) {
  auto* const mine = table_.find(name, c.owner);
  if (mine != nullptr) return ask_again(name, c);
  auto* const other = table_.find(name, c.replaces);
  bool replaced = false;
  if (c.replaces && other != nullptr) {
    const auto was = table_.give_up(*other);
    if (!was) return was.error();
    replaced = *was;
  }
  auto reply = enter(name, c);
  if (reply) reply->replaced = replaced;
  return reply;
}

// The server may have taken back a lock that was granted, or confirmed, long ago. Returns null if
// it is gone.
session_lock_entry* session_lock_service::still_there(session_lock_entry* mine) {
  if (!mine->held || clock_.now() - mine->heard < sure_for_ / heard_of_lately) return mine;
  const std::string name = mine->name;
  const owner_id owner = mine->owner;
  table_.ask_after(*mine);
  table_.forget_what_broke();
  return table_.find(name, owner);
}

result<permits_reply> session_lock_service::ask_again(std::string_view name,
                                                      const permits_command& c) {
  auto* mine = table_.find(name, c.owner);
  if (mine->waits_at_server()) table_.hear_of(*mine);
  mine = still_there(mine);
  if (mine == nullptr) return enter(name, c);
  if (!mine->held && !mine->own) {
    const auto got = table_.try_now(*mine);
    if (!got) return got.error();
  }
  if (mine->held) return holds(*mine, c.lease_us);
  if (c.wait && !mine->own) begin_wait(*mine);
  if (c.wait) return queued(*mine, c);
  const auto was_in = table_.give_up(*mine);
  if (!was_in) return was_in.error();
  return reply_with(permits_outcome::busy);
}

result<permits_reply> session_lock_service::enter(std::string_view name, const permits_command& c) {
  session_lock_entries one;
  session_lock_entry& mine = one.emplace_back();
  mine.owner = c.owner;
  mine.name = name;
  mine.kind = c.kind;
  mine.capacity = c.capacity;
  mine.weight = c.weight;
  mine.peer = c.peer;
  mine.note = c.note;
  const auto got = table_.try_now(mine);
  if (!got) return got.error();
  if (!*got && c.wait) return wait_for(std::move(one), c);
  if (!*got) return reply_with(permits_outcome::busy);
  return holds(table_.add(std::move(one)), c.lease_us);
}

permits_reply session_lock_service::wait_for(session_lock_entries one, const permits_command& c) {
  one.front().lease_us = c.lease_us;
  begin_wait(one.front());
  return queued(table_.add(std::move(one)), c);
}

// A waiter that gets no connection tries again at its next poll.
void session_lock_service::begin_wait(session_lock_entry& mine) {
  table_.begin_wait(mine);
  began_to_wait_ = began_to_wait_ || mine.own;
}

result<permits_reply> session_lock_service::resize(std::string_view name,
                                                   const permits_command& c) {
  auto* const mine = table_.find(name, c.owner);
  if (mine == nullptr || !mine->held) return reply_with(permits_outcome::absent);
  const auto changed = table_.change(*mine, c.weight);
  // A failed change has closed the connection.
  if (!changed) return reply_with(permits_outcome::absent);
  if (!*changed) return reply_with(permits_outcome::busy);
  return granted(*mine, c.lease_us);  // a change lengthens no lease
}

// ---- for people

result<permits_reply> session_lock_service::inspect(std::string_view name) {
  const auto users = table_.over_home([&](lock_link& at) { return at.users(name); });
  if (!users) return users.error();
  return view_of(name, table_, *users);
}

// ---- for the threads that watch

// The thread that reads the inbox must not wait for a server. The notified waiter asks, and its own
// call checks whether the grant is still valid. Until then the hold stays, even if it was granted
// so long ago that it would not count.
std::optional<notification> session_lock_service::next_grant() {
  for (auto s = table_.all().begin(); s != table_.all().end(); ++s) {
    if (!s->waits_at_server()) continue;
    table_.hear_of(*s);
    if (!s->held) continue;
    ends_at(*s, after(clock_.now(), s->lease_us));
    const auto expires_at = granted(*s, s->lease_us).expires_at;
    return notification{notification_kind::granted, s->name, s->owner, s->fence, expires_at, {}};
  }
  return std::nullopt;
}

std::vector<int> session_lock_service::waiting_at() {
  std::vector<int> all;
  for (const session_lock_entry& s : table_.all()) {
    if (s.waits_at_server()) all.push_back(s.own->fd());
  }
  return all;
}

// Gives up holds that are not renewed, and waiters that have stopped polling: the server would keep
// them.
boot_time session_lock_service::give_up_late() {
  while (true) {
    const auto first = std::min_element(
        table_.all().begin(), table_.all().end(),
        [](const session_lock_entry& a, const session_lock_entry& b) { return a.ends < b.ends; });
    first_end_ = first == table_.all().end() ? forever : first->ends;
    if (clock_.now() < first_end_) return first_end_;
    (void)table_.give_up(*first);
    table_.forget_what_broke();
  }
}

std::vector<std::string> session_lock_service::names() {
  std::set<std::string> all;
  for (const session_lock_entry& s : table_.all()) all.insert(s.name);
  return {all.begin(), all.end()};
}

}  // namespace holdfast::store::sql
