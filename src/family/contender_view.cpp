#include "family/contender_view.hpp"

#include <algorithm>
#include <holdfast/store/foreign_note.hpp>
#include <holdfast/store/micros.hpp>

#include "family/contenders.hpp"

namespace holdfast::family {

using namespace store;

namespace {

/// A queue with the data of its nodes, and the current weights.
struct view {
  line all;
  std::vector<contender_data> says;
  std::uint32_t capacity = 1;

  bool holds(std::size_t i) const { return decide(all, i, capacity).mine; }
};

result<view> look(contender_store& port, std::string_view name) {
  auto all = port.contenders(name, contender_store::as_of::latest, nullptr);
  if (!all) return std::move(all.error());
  view v{std::move(*all), {}, 1};
  std::erase_if(v.all, [](const contender& c) { return c.kind == store::kind::latch; });
  if (const contender* const first = first_of_ours(v.all)) v.capacity = first->capacity;
  fit(v.all, v.capacity);
  auto says = port.read(name, v.all);
  if (!says) return std::move(says.error());
  line still_there;
  // A node that has vanished since the queue was read is in no contender's way.
  for (std::size_t i = 0; i < v.all.size(); ++i) {
    auto& one = (*says)[i];
    if (!one) continue;
    contender c = std::move(v.all[i]);
    if (one->weight != 0) c.weight = std::min(c.weight, one->weight);
    still_there.push_back(std::move(c));
    v.says.push_back(std::move(*one));
  }
  v.all = std::move(still_there);
  return v;
}

/// A holder has a second node after an upgrade, which is not a second holder. It also has one for
/// a moment before its upgrade is refused.
bool add_to_holder(permits_record& found, const view& v, std::size_t i) {
  const contender& c = v.all[i];
  const auto same = std::find_if(found.holders.begin(), found.holders.end(),
                                 [&](const auto& h) { return h.owner == c.owner; });
  if (!c.raises || same == found.holders.end()) return false;
  const auto first = std::find_if(v.all.begin(), v.all.end(),
                                  [&](const auto& other) { return other.owner == c.owner; });
  if (!alone(v.all, static_cast<std::size_t>(first - v.all.begin()), i)) return true;
  same->weight = c.weight;
  same->fence = v.says[i].fence;
  return true;
}

void add(permits_record& found, const view& v, std::size_t i, std::int64_t now_at) {
  const contender& c = v.all[i];
  const auto& p = v.says[i];
  // The node of a program that is not holdfast's says neither when it ends nor whose it is.
  const std::int64_t ends = p.lease_us == 0 ? 0 : now_at + p.lease_us;
  const std::string note = c.owner ? p.note : foreign_note(p.note);
  if (add_to_holder(found, v, i)) return;
  if (v.holds(i)) {
    found.holders.push_back({c.owner, c.weight, p.fence, ends, p.since_wall_at, p.peer, note});
  } else {
    found.queue.push_back({c.owner, c.weight, 0, p.lease_us, ends, p.since_wall_at, p.peer, note});
  }
}

}  // namespace

result<permits_reply> inspect(contender_store& port, std::string_view name, boot_time now) {
  const auto v = look(port, name);
  if (!v) return v.error();
  permits_reply reply;
  reply.now_at = micros(now);
  if (v->all.empty()) return reply;
  permits_record& found = reply.found;
  if (const contender* const first = first_of_ours(v->all)) found.kind = first->kind;
  found.capacity = v->capacity;
  for (std::size_t i = 0; i < v->all.size(); ++i) {
    add(found, *v, i, reply.now_at);
  }
  for (const auto& h : found.holders) found.last_fence = std::max(found.last_fence, h.fence);
  return reply;
}

result<permits_reply> evict(contender_store& port, std::string_view name, const owner_id& owner) {
  const auto v = look(port, name);
  if (!v) return v.error();
  permits_reply reply;
  for (std::size_t i = 0; i < v->all.size(); ++i) {
    const contender& c = v->all[i];
    if (!v->holds(i) || (owner && c.owner != owner)) continue;
    const auto nodes = c.owner ? nodes_of(v->all, c.owner) : std::vector{c.node};
    const auto left = port.leave(name, nodes);
    if (!left) return left.error();
    reply.position += *left ? 1 : 0;
  }
  reply.outcome = reply.position > 0 ? permits_outcome::done : permits_outcome::absent;
  return reply;
}

}  // namespace holdfast::family
