#include "family/contender_family.hpp"

#include <algorithm>
#include <thread>

#include "family/contender_latch.hpp"
#include "family/contender_view.hpp"
#include "family/contenders.hpp"
#include "family/own_places.hpp"
#include "kernel/permits.hpp"

namespace holdfast::family {

namespace {

using namespace std::chrono_literals;
using store::contender;
using store::contender_store;
using store::notice_kind;
using store::owner_id;
using store::permits_command;
using store::permits_outcome;
using store::permits_reply;
using store::permits_verb;
using as_of = contender_store::as_of;

/// A place may go away while it is looked at: an operator took it, or the session ended.
constexpr int max_attempts = 5;
/// What could not be given up is tried again.
constexpr auto give_up_again = 1s;

std::int64_t micros(boot_time t) {
  return std::chrono::duration_cast<std::chrono::microseconds>(t.time_since_epoch()).count();
}

boot_time after(boot_time now, std::int64_t us) {
  return saturated_add(now, std::chrono::nanoseconds(std::chrono::microseconds(us)));
}

class contender_family final : public store::session_store {
 public:
  contender_family(std::unique_ptr<contender_store> port, clock& on)
      : clock_(on),
        places_(on),
        inbox_(port->peer(), on),
        latch_(*port, places_, inbox_, on),
        port_(std::move(port)),
        thread_([this] { tidy(); }) {}

  ~contender_family() override {
    places_.stop();
    thread_.join();
  }

  const store::capabilities& can() const noexcept override { return port_->can(); }
  const std::string& url() const noexcept override { return port_->url(); }
  store::inbox& inbox() noexcept override { return inbox_; }
  result<std::vector<std::string>> names() override { return port_->names(); }

  result<store::countdown_reply> countdown(std::string_view name,
                                           const store::countdown_command& c) override {
    return latch_.apply(name, c);
  }

  result<permits_reply> permits(std::string_view name, const permits_command& c) override {
    auto reply = carry_out(name, c);
    if (reply && reply->now_at == 0) reply->now_at = micros(clock_.now());
    return reply;
  }

  std::vector<result<permits_reply>> renew(std::span<const store::renewal> batch) override;

 private:
  result<permits_reply> carry_out(std::string_view name, const permits_command& c);
  result<permits_reply> acquire(std::string_view name, const permits_command& c);
  result<permits_reply> release(std::string_view name, const permits_command& c);
  result<permits_reply> resize(std::string_view name, const permits_command& c);

  result<bool> enter(std::string_view name, const permits_command& c, line& seen);
  result<bool> find_again(std::string_view name, const owner_id& owner);
  result<std::optional<permits_reply>> take_turn(std::string_view name, const permits_command& c,
                                                 line seen);
  result<std::optional<permits_reply>> clash(std::string_view name, const permits_command& c,
                                             const line& all, std::size_t me);
  result<bool> look_ahead(std::string_view name, const permits_command& c, line& all,
                          const decision& d);
  result<std::optional<permits_reply>> granted(std::string_view name, const permits_command& c);
  result<std::optional<permits_reply>> not_granted(std::string_view name, const permits_command& c,
                                                   const line& all, const decision& d);
  permits_reply in_line(const permits_command& c, std::uint32_t position);
  permits_reply holds(const own_place& mine, const permits_command& c);
  permits_reply kept(const permits_command& c);
  result<permits_reply> weaken(std::string_view name, const permits_command& c, own_place mine);
  result<permits_reply> strengthen(std::string_view name, const permits_command& c,
                                   const own_place& mine);
  result<bool> put_away(std::string_view name, const owner_id& owner,
                        std::vector<std::string> nodes, bool unsure);

  contender_store::alarm wake(std::string_view name, const owner_id& owner,
                              const std::string& watched);
  void see_arrivals(std::string_view name, const owner_id& owner);
  void tidy();

  clock& clock_;
  own_places places_;
  store::queue_inbox inbox_;
  contender_latch latch_;
  std::unique_ptr<contender_store> port_;  // its threads call what stands above
  std::thread thread_;
};

result<permits_reply> contender_family::carry_out(std::string_view name, const permits_command& c) {
  switch (c.verb) {
    case permits_verb::acquire:
      return acquire(name, c);
    case permits_verb::renew: {
      const store::renewal one{name, c};
      return std::move(renew({&one, 1}).front());
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

// ---- entering
// ------------------------------------------------------------------------------------

result<permits_reply> contender_family::acquire(std::string_view name, const permits_command& c) {
  bool replaced = false;
  for (int i = 0; i < max_attempts; ++i) {
    const auto mine = places_.find(c.owner);
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
      places_.change(c.owner, [&](own_place& p) {
        p.ends = after(clock_.now(), c.place_us);
        ++p.quiet;
      });
      return in_line(c, 0);
    }
    auto turn = take_turn(name, c, std::move(seen));
    if (!turn) return std::move(turn.error());
    if (!*turn) continue;
    (*turn)->replaced = replaced;
    return std::move(**turn);
  }
  return failure{errc::unavailable,
                 "the place in line went away each time it was taken: does "
                 "somebody remove them, or does the session end too soon?"};
}

// True if `instead_of` was there until this step; `seen` is the line, if the store told it.
result<bool> contender_family::enter(std::string_view name, const permits_command& c, line& seen) {
  if (places_.find(c.owner)) {
    const auto found = find_again(name, c.owner);
    if (!found) return found.error();
    if (*found) return false;
  }
  std::vector<std::string> leaving;
  if (const auto other = places_.find(c.instead_of)) leaving = other->nodes;
  contender who;
  who.owner = c.owner;
  who.kind = c.kind;
  who.capacity = c.capacity;
  who.weight = c.weight;
  const store::placard says{c.weight, 0, 0, c.lease_us, std::string(c.peer), std::string(c.note)};
  own_place mine;
  mine.name = name;
  mine.weight = c.weight;
  mine.ends = after(clock_.now(), c.place_us);
  mine.unsure = true;
  places_.put(c.owner, mine);
  auto in = port_->enter(name, who, says, leaving);
  if (!in) {
    if (!in.error().outcome_unknown) places_.erase(c.owner);
    return std::move(in.error());
  }
  if (c.instead_of) places_.erase(c.instead_of);
  places_.change(c.owner, [&](own_place& p) {
    p.nodes = {in->place};
    p.fence = in->fence;
    p.unsure = false;
  });
  seen = std::move(in->line);
  return in->replaced;
}

// The store did not say whether it let us in. True if it did.
result<bool> contender_family::find_again(std::string_view name, const owner_id& owner) {
  const auto all = port_->contenders(name, as_of::latest, nullptr);
  if (!all) return all.error();
  const auto nodes = places_of(*all, owner);
  if (nodes.empty()) return false;
  const auto says = port_->read(name, nodes.front(), nullptr);
  if (!says) return says.error();
  if (!*says) return false;
  return places_.change(owner, [&](own_place& p) {
    p.nodes = nodes;
    p.fence = (*says)->fence;
    p.unsure = false;
  });
}

// ---- whose turn it is
// ----------------------------------------------------------------------------

// Nothing if our place is gone.
result<std::optional<permits_reply>> contender_family::take_turn(std::string_view name,
                                                                 const permits_command& c,
                                                                 line seen) {
  while (true) {
    const auto mine = places_.find(c.owner);
    if (!mine) return std::optional<permits_reply>{};
    auto all = seen.empty() ? port_->contenders(name, as_of::seen, nullptr)
                            : result<line>(std::exchange(seen, {}));
    if (!all) return std::move(all.error());
    fit(*all, c.capacity);
    const std::size_t me = index_of(*all, mine->nodes.front());
    if (me == all->size()) {
      places_.erase(c.owner);
      return std::optional<permits_reply>{};
    }
    auto clashes = clash(name, c, *all, me);
    if (!clashes || *clashes) return clashes;
    if (is_record(all->front())) continue;  // it was over, and is gone now
    for (bool again = true; again;) {
      for (contender& other : *all) {
        const auto known = mine->watched.find(other.place);
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

// Another kind or capacity than what the name is in use as.
result<std::optional<permits_reply>> contender_family::clash(std::string_view name,
                                                             const permits_command& c,
                                                             const line& all, std::size_t me) {
  const contender* const first = first_of_ours(all);
  if (first == &all[me] || (first->kind == c.kind && first->capacity == c.capacity)) {
    return std::optional<permits_reply>{};
  }
  if (is_record(*first)) {
    const auto over = latch_.forget_if_over(name);
    if (!over) return over.error();
    if (*over) return std::optional<permits_reply>{};
  }
  permits_reply reply;
  const bool kind = first->kind != c.kind;
  reply.outcome = kind ? permits_outcome::kind_mismatch : permits_outcome::capacity_mismatch;
  reply.found.kind = first->kind;
  reply.found.capacity = first->capacity;
  if (auto left = release(name, c); !left) return std::move(left.error());
  return std::optional(std::move(reply));
}

// Watches those ahead of us, and reads what they say on the occasion: one may need less than when
// it entered. True if that changes things; then an empty line has to be read anew.
result<bool> contender_family::look_ahead(std::string_view name, const permits_command& c,
                                          line& all, const decision& d) {
  if (!c.wait && c.kind != store::kind::shared_mutex) return false;
  const auto mine = places_.find(c.owner);
  if (!mine) return all.clear(), true;
  for (const std::size_t w : d.watch) {
    contender& other = all[w];
    if (mine->watched.contains(other.place)) continue;
    if (c.wait) {
      places_.change(c.owner, [&](own_place& p) { p.watched[other.place] = other.weight; });
    }
    const auto says =
        port_->read(name, other.place, c.wait ? wake(name, c.owner, other.place) : nullptr);
    if (!says || !*says) {
      places_.change(c.owner, [&](own_place& p) { p.watched.erase(other.place); });
      if (!says) return says.error();
      return all.clear(), true;
    }
    const std::uint32_t now = (*says)->weight;
    if (now == 0 || now >= other.weight) continue;
    other.weight = now;
    places_.change(c.owner, [&](own_place& p) {
      if (const auto at = p.watched.find(other.place); at != p.watched.end()) at->second = now;
    });
    return true;
  }
  return false;
}

result<std::optional<permits_reply>> contender_family::granted(std::string_view name,
                                                               const permits_command& c) {
  places_.change(c.owner, [&](own_place& p) {
    p.held = true;
    p.watched.clear();
    p.waits_for.clear();
    p.ends = after(clock_.now(), c.place_us);
  });
  // Who waited for long knows its turn, and not whether its session still counts.
  const auto lease =
      std::min<std::chrono::nanoseconds>(std::chrono::microseconds(c.lease_us), port_->safe_span());
  if (port_->safe_until() < clock_.now() + lease / 2) {
    auto command = c;
    command.verb = permits_verb::renew;
    auto sure = carry_out(name, command);
    if (!sure) return std::move(sure.error());
    if (sure->outcome != permits_outcome::granted) return std::optional<permits_reply>{};
  }
  if (c.lingers) see_arrivals(name, c.owner);
  const auto mine = places_.find(c.owner);
  if (!mine) return std::optional<permits_reply>{};
  return std::optional(holds(*mine, c));
}

result<std::optional<permits_reply>> contender_family::not_granted(std::string_view name,
                                                                   const permits_command& c,
                                                                   const line& all,
                                                                   const decision& d) {
  if (!c.wait) {
    auto left = release(name, c);
    if (!left) return std::move(left.error());
    auto reply = in_line(c, d.position);
    reply.outcome = permits_outcome::busy;
    return std::optional(std::move(reply));
  }
  places_.change(c.owner, [&](own_place& p) {
    p.ends = after(clock_.now(), c.place_us);
    p.quiet = 0;
    p.waits_for.clear();
    for (const std::size_t w : d.watch) p.waits_for.push_back(all[w].place);
  });
  return std::optional(in_line(c, d.position));
}

permits_reply contender_family::in_line(const permits_command& c, std::uint32_t position) {
  permits_reply reply;
  reply.outcome = permits_outcome::queued;
  reply.now_at = micros(clock_.now());
  reply.position = std::max(position, 1U);
  reply.look_again_us = std::min<std::int64_t>(kernel::look_again_us, c.place_us / 3);
  return reply;
}

// Who is told so believes it until then, and no longer: then the place goes, if nothing comes.
permits_reply contender_family::holds(const own_place& mine, const permits_command& c) {
  const boot_time now = clock_.now();
  const boot_time until = std::min(after(now, c.lease_us), port_->safe_until());
  places_.change(c.owner, [&](own_place& p) { p.ends = until; });
  permits_reply reply;
  reply.outcome = permits_outcome::granted;
  reply.fence = mine.fence;
  reply.now_at = micros(now);
  reply.expires_at = micros(until);
  return reply;
}

contender_store::alarm contender_family::wake(std::string_view name, const owner_id& owner,
                                              const std::string& watched) {
  return [this, name = std::string(name), owner, watched] {
    places_.change(owner, [&](own_place& p) { p.watched.erase(watched); });
    inbox_.put({notice_kind::granted, name, owner, 0, 0, {}});
  };
}

// ---- keeping and leaving
// -------------------------------------------------------------------------

std::vector<result<permits_reply>> contender_family::renew(std::span<const store::renewal> batch) {
  std::vector<result<permits_reply>> replies(batch.size(), permits_reply{});
  std::vector<contender_store::place_of> asked;
  std::vector<std::size_t> whose;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto& [name, c] = batch[i];
    if (c.verb != permits_verb::renew) {
      replies[i] = permits(name, c);
      continue;
    }
    const auto mine = places_.find(c.owner);
    if (mine && !mine->nodes.empty()) {
      asked.push_back({name, mine->nodes.back()});
      whose.push_back(i);
    } else {
      replies[i]->outcome = permits_outcome::absent;
    }
  }
  const auto there = port_->confirm(asked);
  for (std::size_t i = 0; i < whose.size(); ++i) {
    const auto& c = batch[whose[i]].command;
    if (!there[i]) {
      replies[whose[i]] = there[i].error();
      continue;
    }
    if (!*there[i]) places_.erase(c.owner);
    replies[whose[i]] = kept(c);
  }
  for (auto& r : replies) {
    if (r && r->now_at == 0) r->now_at = micros(clock_.now());
  }
  return replies;
}

permits_reply contender_family::kept(const permits_command& c) {
  const auto mine = places_.find(c.owner);
  if (mine && mine->held) return holds(*mine, c);
  const auto lasts = std::max(c.place_us, kernel::look_again_us);
  places_.change(c.owner, [&](own_place& p) { p.ends = after(clock_.now(), lasts); });
  permits_reply reply = in_line(c, 1);
  reply.look_again_us = kernel::look_again_us;
  if (!mine) reply.outcome = permits_outcome::absent;
  return reply;
}

result<bool> contender_family::put_away(std::string_view name, const owner_id& owner,
                                        std::vector<std::string> nodes, bool unsure) {
  if (unsure) {
    const auto all = port_->contenders(name, as_of::latest, nullptr);
    if (!all) return all.error();
    nodes = places_of(*all, owner);
  }
  if (nodes.empty()) return false;
  return port_->leave(name, nodes);
}

result<permits_reply> contender_family::release(std::string_view name, const permits_command& c) {
  permits_reply reply;
  reply.outcome = permits_outcome::absent;
  const auto mine = places_.find(c.owner);
  if (!mine) return reply;
  const auto left = put_away(name, c.owner, mine->nodes, mine->unsure);
  if (!left) return left.error();
  places_.erase(c.owner);
  if (*left) reply.outcome = permits_outcome::done;
  return reply;
}

// ---- another weight
// ------------------------------------------------------------------------------

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
    p.fence = now.fence;
    p.weight = now.weight;
    p.unsure = false;
  });
  return holds(now, c);
}

// ---- by itself
// -----------------------------------------------------------------------------------

// Whoever keeps an idle lock is told that somebody waits; if nobody does, then when one comes.
void contender_family::see_arrivals(std::string_view name, const owner_id& owner) {
  const auto mine = places_.find(owner);
  if (!mine || !mine->held) return;
  auto all = port_->contenders(name, as_of::seen, [this, name = std::string(name), owner] {
    places_.later({own_places::job::kind::see_arrivals, name, owner, {}, false, clock_.now()});
  });
  if (!all) return;
  std::uint32_t capacity = 1;
  if (const contender* const first = first_of_ours(*all)) capacity = first->capacity;
  fit(*all, capacity);
  if (all->empty() || decide(*all, all->size() - 1, capacity).mine) return;
  inbox_.put({notice_kind::wanted, std::string(name), owner, mine->fence, 0, {}});
}

void contender_family::tidy() {
  while (auto job = places_.next()) {
    if (job->what == own_places::job::kind::see_arrivals) {
      see_arrivals(job->name, job->owner);
    } else if (!put_away(job->name, job->owner, job->nodes, job->unsure)) {
      job->at = clock_.now() + give_up_again;
      places_.later(std::move(*job));
    }
  }
}

}  // namespace

std::unique_ptr<store::session_store> over(std::unique_ptr<store::contender_store> port,
                                           clock& on) {
  return std::make_unique<contender_family>(std::move(port), on);
}

}  // namespace holdfast::family
