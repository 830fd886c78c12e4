#include "store/sql/session_view.hpp"

#include <algorithm>
#include <set>

namespace holdfast::store::sql {

namespace {

std::int64_t micros(boot_time t) {
  return std::chrono::duration_cast<std::chrono::microseconds>(t.time_since_epoch()).count();
}

// As the engine writes it of a session of our own: host, number, program.
std::string note_of(const lock_user& u) {
  return (u.host.empty() ? "-" : u.host) + ' ' + std::to_string(u.connection) + ' ' +
         (u.program.empty() ? "-" : u.program);
}

// Nobody knows the owner id of another session's: its connection's number stands for it.
owner_id id_of(const lock_user& u) { return {static_cast<std::uint64_t>(u.connection) << 32, 1}; }

}  // namespace

permits_reply view_of(std::string_view name, session_lock_table& mine,
                      std::span<const lock_user> users) {
  permits_reply reply;
  std::set<std::int64_t> ours;
  for (const session_lock_entry& s : mine.all()) {
    if (s.name != name) continue;
    if (s.held || s.own) ours.insert(mine.link_of(s).id());
    if (s.held) {
      reply.found.holders.push_back({s.owner, s.weight, s.fence, micros(s.ends),
                                     static_cast<std::int64_t>(s.fence), s.peer, s.note});
    } else {
      reply.found.queue.push_back({s.owner, s.weight, 0, 0, micros(s.ends), 0, s.peer, s.note});
    }
    reply.found.last_fence = std::max(reply.found.last_fence, s.fence);
  }
  for (const lock_user& u : users) {
    if (ours.contains(u.connection)) continue;
    if (u.holds) reply.found.holders.push_back({id_of(u), 1, 0, 0, 0, {}, note_of(u)});
    if (!u.holds) reply.found.queue.push_back({id_of(u), 1, 0, 0, 0, 0, {}, note_of(u)});
  }
  reply.found.capacity = reply.found.holders.empty() && reply.found.queue.empty() ? 0 : 1;
  return reply;
}

}  // namespace holdfast::store::sql
