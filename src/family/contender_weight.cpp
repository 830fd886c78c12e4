#include "family/contender_family_parts.hpp"

namespace holdfast::family {

using namespace store;
using as_of = contender_store::as_of;

result<permits_reply> contender_family::resize(std::string_view name, const permits_command& c) {
  auto mine = entries_.find(name, c.owner);
  if (!mine || !mine->held) return permits_reply{.outcome = permits_outcome::absent};
  if (c.weight == mine->weight) return holds(*mine, c);
  return c.weight < mine->weight ? weaken(name, c, std::move(*mine))
                                 : strengthen(name, c, std::move(*mine));
}

// Removes all nodes of the owner but the first, including those that may still be created.
result<bool> contender_family::keep_first(std::string_view name, const owner_id& owner,
                                          const own_entry& mine) {
  std::vector<std::string> others(mine.nodes.begin() + 1, mine.nodes.end());
  if (mine.unsure) {
    const auto all = port_->contenders(name, as_of::settled, nullptr);
    if (!all) return all.error();
    others = nodes_of(*all, owner);
    std::erase(others, mine.nodes.front());
  }
  if (others.empty()) return false;
  return leave(name, owner, others);
}

// Removes the second node if the first was removed while the second was created.
void contender_family::give_up_unless_known(std::string_view name, const owner_id& owner,
                                            std::vector<std::string> nodes, bool unsure) {
  // Whatever removes that entry removes these nodes as well.
  if (entries_.find(name, owner)) return;
  give_up_later(name, owner, std::move(nodes), unsure, clock_.now());
}

// A downgrade removes the node that an upgrade added, and then writes the smaller weight into the
// first node. If the second step fails after the first has succeeded, the holder is weaker at the
// store than it knows.
result<permits_reply> contender_family::weaken(std::string_view name, const permits_command& c,
                                               own_entry mine) {
  permits_reply gone{.outcome = permits_outcome::absent};
  const bool had_more = mine.nodes.size() > 1 || mine.unsure;
  const auto knows = [&](bool of_more) {
    entries_.change(name, c.owner, [&](own_entry& p) {
      p.nodes = mine.nodes;
      p.unsure = of_more;
    });
  };
  const own_entry before = mine;
  mine.nodes.resize(1);
  knows(had_more);  // a renewal asks for the first node from now on: the second may be gone
  const auto left = keep_first(name, c.owner, before);
  if (!left && left.error().outcome_unknown) return left.error();
  if (!left) {
    mine = before;
    return knows(before.unsure), left.error();
  }
  mine.unsure = false;
  knows(false);
  const auto half_done = [half = *left || before.nodes.size() > 1](failure f) {
    f.outcome_unknown = f.outcome_unknown || half;
    return f;
  };
  const auto says = port_->read(name, mine.nodes.front(), nullptr);
  if (!says) return half_done(says.error());
  if (!*says) return forget(name, c.owner), gone;
  if ((*says)->weight > c.weight) {
    auto now = **says;
    now.weight = c.weight;
    const auto written = port_->write(name, mine.nodes.front(), now);
    if (!written) return half_done(written.error());
    if (!*written) return forget(name, c.owner), gone;
  }
  entries_.change(name, c.owner, [&](own_entry& p) {
    p.made = (*says)->fence;
    p.weight = c.weight;
  });
  return holds(mine, c);
}

// An upgrade adds a second node at the end, which keeps out later contenders. It counts if no other
// contender holds the lock or waits ahead of that node. Once the second node exists, a failure may
// have changed something.
result<permits_reply> contender_family::strengthen(std::string_view name, const permits_command& c,
                                                   own_entry mine) {
  if (mine.unsure) {
    const auto left = keep_first(name, c.owner, mine);
    if (!left) return left.error();
  }
  const contender second{{}, c.owner, c.kind, c.capacity, c.weight, true};
  const contender_data says{c.weight, 0, 0, c.lease_us, std::string(c.peer), std::string(c.note)};
  entries_.change(name, c.owner, [](own_entry& p) { p.unsure = true; });
  const auto in = port_->enter(name, second, says, {});
  if (!in) {
    if (in.error().outcome_unknown) give_up_unless_known(name, c.owner, {}, true);
    return in.error();
  }
  const auto all = port_->contenders(name, as_of::seen, nullptr);
  if (!all) {
    auto failed = all.error();
    give_up_unless_known(name, c.owner, {in->node}, in->repeated);
    failed.outcome_unknown = true;
    return failed;
  }
  permits_reply reply;
  const std::size_t first = index_of(*all, mine.nodes.front());
  const std::size_t raised = index_of(*all, in->node);
  const bool there = first < all->size() && raised < all->size();
  if (!there || !alone(*all, first, raised)) {
    reply.outcome = there ? permits_outcome::busy : permits_outcome::absent;
    mine.nodes.push_back(in->node);
    mine.unsure = in->repeated;
    auto left = keep_first(name, c.owner, mine);
    if (!left) {
      give_up_unless_known(name, c.owner, {in->node}, in->repeated);
      left.error().outcome_unknown = true;
      return std::move(left.error());
    }
    entries_.change(name, c.owner, [](own_entry& p) { p.unsure = false; });
    return reply;
  }
  own_entry now = mine;
  now.nodes.push_back(in->node);
  now.fence = in->fence;
  now.weight = c.weight;
  entries_.change(name, c.owner, [&](own_entry& p) {
    p.nodes = now.nodes;
    p.fence = p.made = now.fence;
    p.weight = now.weight;
    p.unsure = in->repeated;
  });
  give_up_unless_known(name, c.owner, {in->node}, in->repeated);
  return holds(now, c);
}

}  // namespace holdfast::family
