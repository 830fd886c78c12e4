#include "store/sql/session_view.hpp"

#include <algorithm>
#include <holdfast/store/micros.hpp>
#include <set>

#include "base/names.hpp"

namespace holdfast::store::sql {

namespace {

// In the format of the engine's note for a holdfast session: host, process, program, reason. The
// server does not know the process.
std::string note_of(const lock_user& u) {
  return (u.host.empty() ? "-" : u.host) + " 0 " + (u.program.empty() ? "-" : u.program) +
         " connection " + std::to_string(u.connection);
}

// The owner id of another session's lock is unknown: the number of its connection replaces it.
owner_id id_of(const lock_user& u) { return {static_cast<std::uint64_t>(u.connection) << 32, 1}; }

// The server knows which locks are shared, but not the kind of another session's lock.
void find_kind(permits_record& found, std::string_view name, session_lock_table& mine,
               std::span<const lock_user> users) {
  const bool shared =
      std::any_of(users.begin(), users.end(), [](const lock_user& u) { return u.shared; });
  found.kind = shared ? kind::shared_mutex : kind::mutex;
  found.capacity = shared ? base::max_permits : 1;
  for (const session_lock_entry& s : mine.all()) {
    if (s.name != name) continue;
    found.kind = s.kind;
    found.capacity = s.capacity;
  }
}

}  // namespace

permits_reply view_of(std::string_view name, session_lock_table& mine,
                      std::span<const lock_user> users) {
  permits_reply reply;
  permits_record& found = reply.found;
  find_kind(found, name, mine, users);
  std::set<std::int64_t> ours;
  for (const session_lock_entry& s : mine.all()) {
    if (s.name != name) continue;
    if (s.held || s.own) ours.insert(mine.link_of(s).id());
    if (s.held) {
      found.holders.push_back({s.owner, s.weight, s.fence, micros(s.ends),
                               static_cast<std::int64_t>(s.fence), s.peer, s.note});
    } else {
      found.queue.push_back({s.owner, s.weight, 0, 0, micros(s.ends), 0, s.peer, s.note});
    }
    found.last_fence = std::max(found.last_fence, s.fence);
  }
  for (const lock_user& u : users) {
    if (ours.contains(u.connection)) continue;
    const std::uint32_t weight = u.shared ? 1 : found.capacity;
    if (u.holds) found.holders.push_back({id_of(u), weight, 0, 0, 0, {}, note_of(u)});
    if (!u.holds) found.queue.push_back({id_of(u), weight, 0, 0, 0, 0, {}, note_of(u)});
  }
  if (found.holders.empty() && found.queue.empty()) found.capacity = 0;
  return reply;
}

}  // namespace holdfast::store::sql
