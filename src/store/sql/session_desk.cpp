#include "store/sql/session_desk.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "store/sql/session_view.hpp"

namespace holdfast::store::sql {

namespace {

/// Who has no place at the server; and who has one, should a notice be lost.
constexpr std::int64_t without_place_us = 50'000;
constexpr std::int64_t with_place_us = 1'000'000;
/// What part of the time that a hold counts may have gone by before the server is asked once more.
constexpr int heard_of_lately = 8;

std::int64_t micros(boot_time t) {
  return std::chrono::duration_cast<std::chrono::microseconds>(t.time_since_epoch()).count();
}

boot_time after(boot_time now, std::int64_t us) {
  return saturated_add(now, std::chrono::nanoseconds(std::chrono::microseconds(us)));
}

permits_reply reply_with(permits_outcome outcome) {
  permits_reply r;
  r.outcome = outcome;
  return r;
}

}  // namespace

// ---- commands
// ------------------------------------------------------------------------------------

result<permits_reply> session_desk::permits(std::string_view name, const permits_command& c) {
  auto reply = carry_out(name, c);
  seating_.forget_what_broke();
  if (reply && reply->now_at == 0) reply->now_at = micros(clock_.now());
  return reply;
}

result<permits_reply> session_desk::carry_out(std::string_view name, const permits_command& c) {
  switch (c.verb) {
    case permits_verb::acquire:
      return acquire(name, c);
    case permits_verb::renew: {
      const auto mine = seating_.find(name, c.owner);
      if (mine != seating_.all().end() && mine->held) seating_.ask_after(*mine);
      seating_.forget_what_broke();
      return confirm(name, c);
    }
    case permits_verb::release: {
      const auto mine = seating_.find(name, c.owner);
      if (mine == seating_.all().end()) return reply_with(permits_outcome::absent);
      const auto was = seating_.give_up(mine);
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

// What another session holds ends with its connection only.
result<permits_reply> session_desk::evict(std::string_view name, const owner_id& owner) {
  const auto mine = seating_.find(name, owner);
  if (mine == seating_.all().end()) {
    return failure{errc::unsupported,
                   "a lock of mode=session ends with the connection that holds it, and with it all "
                   "others of that connection: end that one at the server"};
  }
  const auto was = seating_.give_up(mine);
  if (!was) return was.error();
  permits_reply reply = reply_with(permits_outcome::done);
  reply.position = 1;
  return reply;
}

std::vector<result<permits_reply>> session_desk::renew(std::span<const renewal> batch) {
  std::map<lock_link*, boot_time> asked;
  for (const auto& [name, c] : batch) {
    const auto mine = seating_.find(name, c.owner);
    if (c.verb != permits_verb::renew || mine == seating_.all().end() || !mine->held) continue;
    const auto [of_link, first] = asked.try_emplace(&seating_.link_of(*mine));
    if (first) {
      seating_.ask_after(*mine);
      of_link->second = mine->heard;
    }
    mine->heard = std::max(mine->heard, of_link->second);
  }
  seating_.forget_what_broke();
  std::vector<result<permits_reply>> replies;
  for (const auto& [name, c] : batch) {
    replies.push_back(c.verb == permits_verb::renew ? confirm(name, c) : carry_out(name, c));
    seating_.forget_what_broke();
    if (replies.back() && replies.back()->now_at == 0) {
      replies.back()->now_at = micros(clock_.now());
    }
  }
  return replies;
}

permits_reply session_desk::confirm(std::string_view name, const permits_command& c) {
  const auto mine = seating_.find(name, c.owner);
  if (mine == seating_.all().end()) return reply_with(permits_outcome::absent);
  if (!mine->held) return queued(*mine, c);
  return holds(*mine, c.lease_us);
}

// The server counts the silence of the connection, and not when this process looked: it may have
// been stopped in between.
permits_reply session_desk::holds(seat& s, std::int64_t lease_us) {
  const auto now = clock_.now();
  const auto sure_us = std::chrono::duration_cast<std::chrono::microseconds>(sure_for_).count();
  ends_at(s, after(now, lease_us));
  permits_reply r = reply_with(permits_outcome::granted);
  r.fence = s.fence;
  r.now_at = micros(now);
  r.expires_at = r.now_at + std::min(lease_us, micros(s.heard) + sure_us - r.now_at);
  return r;
}

permits_reply session_desk::queued(seat& s, const permits_command& c) {
  ends_at(s, after(clock_.now(), c.place_us));
  permits_reply r = reply_with(permits_outcome::queued);
  r.position = 1;
  r.look_again_us = s.own ? with_place_us : without_place_us;
  return r;
}

void session_desk::ends_at(seat& s, boot_time t) {
  s.ends = t;
  first_end_ = std::min(first_end_, t);
}

// ---- taking
// --------------------------------------------------------------------------------------

result<permits_reply> session_desk::acquire(std::string_view name, const permits_command& c) {
  const auto mine = seating_.find(name, c.owner);
  if (mine != seating_.all().end()) return ask_again(name, c);
  const auto other = seating_.find(name, c.instead_of);
  bool replaced = false;
  if (c.instead_of && other != seating_.all().end()) {
    const auto was = seating_.give_up(other);
    if (!was) return was.error();
    replaced = *was;
  }
  auto reply = enter(name, c);
  if (reply) reply->replaced = replaced;
  return reply;
}

// What was granted, or confirmed, long ago is the server's to have taken back since. Nothing: it is
// gone.
seats::iterator session_desk::still_there(seats::iterator mine) {
  if (!mine->held || clock_.now() - mine->heard < sure_for_ / heard_of_lately) return mine;
  const std::string name = mine->name;
  const owner_id owner = mine->owner;
  seating_.ask_after(*mine);
  seating_.forget_what_broke();
  return seating_.find(name, owner);
}

result<permits_reply> session_desk::ask_again(std::string_view name, const permits_command& c) {
  auto mine = seating_.find(name, c.owner);
  if (mine->waits_at_server()) seating_.hear_of(*mine);
  mine = still_there(mine);
  if (mine == seating_.all().end()) return enter(name, c);
  if (!mine->held && !mine->own) {
    const auto got = seating_.try_now(*mine);
    if (!got) return got.error();
  }
  if (mine->held) return holds(*mine, c.lease_us);
  if (c.wait && !mine->own) begin_wait(*mine);
  if (c.wait) return queued(*mine, c);
  const auto was_in = seating_.give_up(mine);
  if (!was_in) return was_in.error();
  return reply_with(permits_outcome::busy);
}

result<permits_reply> session_desk::enter(std::string_view name, const permits_command& c) {
  seat mine;
  mine.owner = c.owner;
  mine.name = name;
  mine.kind = c.kind;
  mine.capacity = c.capacity;
  mine.weight = c.weight;
  mine.peer = c.peer;
  mine.note = c.note;
  const auto got = seating_.try_now(mine);
  if (!got) return got.error();
  if (!*got && c.wait) return wait_for(std::move(mine), c);
  if (!*got) return reply_with(permits_outcome::busy);
  return holds(seating_.add(std::move(mine)), c.lease_us);
}

permits_reply session_desk::wait_for(seat mine, const permits_command& c) {
  mine.lease_us = c.lease_us;
  begin_wait(mine);
  return queued(seating_.add(std::move(mine)), c);
}

// Whoever gets no connection for it tries again when he looks again.
void session_desk::begin_wait(seat& mine) {
  seating_.begin_wait(mine);
  began_to_wait_ = began_to_wait_ || mine.own;
}

result<permits_reply> session_desk::resize(std::string_view name, const permits_command& c) {
  const auto mine = seating_.find(name, c.owner);
  if (mine == seating_.all().end() || !mine->held) return reply_with(permits_outcome::absent);
  const auto changed = seating_.change(*mine, c.weight);
  if (!changed) return changed.error();
  if (!*changed) return reply_with(permits_outcome::busy);
  return holds(*mine, c.lease_us);
}

// ---- for people
// ----------------------------------------------------------------------------------

result<permits_reply> session_desk::inspect(std::string_view name) {
  const auto home = seating_.home();
  if (!home) return home.error();
  const auto users = (*home)->users(name);
  if (!users) return users.error();
  return view_of(name, seating_, *users);
}

// ---- for who watches
// -----------------------------------------------------------------------------

std::optional<notice> session_desk::next_grant() {
  for (auto s = seating_.all().begin(); s != seating_.all().end(); ++s) {
    if (!s->waits_at_server()) continue;
    seating_.hear_of(*s);
    if (!s->held) continue;
    const owner_id owner = s->owner;
    const std::string name = s->name;
    if (still_there(s) == seating_.all().end()) {
      return notice{notice_kind::granted, name, owner, 0, 0, {}};  // it asks, and waits again
    }
    const auto granted = holds(*s, s->lease_us);
    return notice{notice_kind::granted, s->name, s->owner, s->fence, granted.expires_at, {}};
  }
  return std::nullopt;
}

std::vector<int> session_desk::waiting_at() {
  std::vector<int> all;
  for (const seat& s : seating_.all()) {
    if (s.waits_at_server()) all.push_back(s.own->fd());
  }
  return all;
}

// Gives up what nobody renews and who asks no more: the server would keep it.
boot_time session_desk::give_up_late() {
  while (true) {
    const auto first =
        std::min_element(seating_.all().begin(), seating_.all().end(),
                         [](const seat& a, const seat& b) { return a.ends < b.ends; });
    first_end_ = first == seating_.all().end() ? forever : first->ends;
    if (clock_.now() < first_end_) return first_end_;
    (void)seating_.give_up(first);
    seating_.forget_what_broke();
  }
}

std::vector<std::string> session_desk::names() {
  std::set<std::string> all;
  for (const seat& s : seating_.all()) all.insert(s.name);
  return {all.begin(), all.end()};
}

}  // namespace holdfast::store::sql
