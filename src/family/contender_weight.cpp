#include "family/contender_family_parts.hpp"

namespace holdfast::family {

using store::contender;
using store::permits_command;
using store::permits_outcome;
using store::permits_reply;
using as_of = store::contender_store::as_of;

result<permits_reply> contender_family::resize(std::string_view name, const permits_command& c) {
  auto mine = places_.find(c.owner);
  if (!mine || !mine->held) {
    permits_reply reply;
    reply.outcome = permits_outcome::absent;
    return reply;
  }
  if (c.weight == mine->weight) return holds(*mine, c);
  return c.weight < mine->weight ? weaken(name, c, std::move(*mine)) : strengthen(name, c, *mine);
}

// What was added by an upgrade goes; what it needs less of than it entered with, it says.
result<permits_reply> contender_family::weaken(std::string_view name, const permits_command& c,
                                               own_place mine) {
  permits_reply gone;
  gone.outcome = permits_outcome::absent;
  if (mine.nodes.size() > 1) {
    const auto left = port_->leave(name, std::span(mine.nodes).subspan(1));
    if (!left) return left.error();
    mine.nodes.resize(1);
  }
  const auto says = port_->read(name, mine.nodes.front(), nullptr);
  if (!says) return says.error();
  if (!*says) return places_.erase(c.owner), gone;
  if ((*says)->weight > c.weight) {
    auto now = **says;
    now.weight = c.weight;
    const auto written = port_->write(name, mine.nodes.front(), now);
    if (!written) return written.error();
    if (!*written) return places_.erase(c.owner), gone;
  }
  places_.change(c.owner, [&](own_place& p) {
    p.nodes = mine.nodes;
    p.made = (*says)->fence;
    p.weight = c.weight;
  });
  return holds(mine, c);
}

// A second place at the end keeps out whoever comes later; it counts if nobody else is in already.
result<permits_reply> contender_family::strengthen(std::string_view name, const permits_command& c,
                                                   const own_place& mine) {
  contender second;
  second.owner = c.owner;
  second.kind = c.kind;
  second.capacity = c.capacity;
  second.weight = c.weight;
  second.raises = true;
  const store::placard says{c.weight, 0, 0, c.lease_us, std::string(c.peer), std::string(c.note)};
  places_.change(c.owner, [](own_place& p) { p.unsure = true; });
  const auto in = port_->enter(name, second, says, {});
  if (!in) return in.error();
  auto all = port_->contenders(name, as_of::seen, nullptr);
  if (!all) return std::move(all.error());
  fit(*all, c.capacity);
  permits_reply reply;
  if (const auto me = index_of(*all, mine.nodes.front()); me < all->size()) {
    (*all)[me].weight = mine.weight;
  } else {
    reply.outcome = permits_outcome::absent;
  }
  const std::size_t raised = index_of(*all, in->place);
  const bool there = reply.outcome != permits_outcome::absent && raised < all->size();
  if (!there || !alone(*all, raised, c.capacity)) {
    if (there) reply.outcome = permits_outcome::busy;
    const auto left = port_->leave(name, std::span(&in->place, 1));
    if (!left) return left.error();
    places_.change(c.owner, [](own_place& p) { p.unsure = false; });
    return reply;
  }
  own_place now = mine;
  now.nodes.push_back(in->place);
  now.fence = in->fence;
  now.weight = c.weight;
  places_.change(c.owner, [&](own_place& p) {
    p.nodes = now.nodes;
    p.fence = p.made = now.fence;
    p.weight = now.weight;
    p.unsure = false;
  });
  return holds(now, c);
}

}  // namespace holdfast::family
