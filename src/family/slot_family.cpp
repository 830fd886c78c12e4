#include "family/slot_family.hpp"

#include <algorithm>
#include <chrono>
#include <holdfast/store/foreign_note.hpp>
#include <holdfast/store/micros.hpp>
#include <holdfast/store/perhaps_gone.hpp>
#include <iterator>
#include <limits>

#include "family/own_slots.hpp"
#include "family/turns_of_others.hpp"

namespace holdfast::family {

using namespace store;

namespace {

/// The number of slots of a semaphore of unknown size that are read first, and the factor by which
/// it grows as long as all of them are empty.
constexpr std::uint32_t first_look = 16;
constexpr std::uint32_t next_look_times = 8;

/// A server may report any remaining time, so the sum must not overflow.
std::int64_t sum(std::int64_t now_at, std::int64_t left_us) {
  return now_at + std::min(left_us, std::numeric_limits<std::int64_t>::max() - now_at);
}

/// What a store says is left of a lease that has ended, while it still keeps the entry: memcached
/// does so for up to two seconds.
constexpr std::int64_t ended = 1;

slot_entry entry_of(const permits_command& c) {
  return {.owner = c.owner,
          .kind = c.kind,
          .capacity = c.capacity,
          .note = std::string(c.note),
          .alone = c.kind != store::kind::shared_mutex || c.weight > 1,
          .weight = c.weight,
          .outlives_session = c.outlives_session,
          .queue_lease_us = c.wait ? c.queue_lease_us : 0};
}

slot slot_of(std::string_view name, const permits_command& c, std::uint32_t part = 0) {
  return {name, part, c.kind, c.in_order};
}

own_slots::entry entry_at(const slot& at, std::uint32_t slots = 1) {
  return {at.part, at.kind, at.in_order, slots};
}

std::uint32_t weight_of(const slot_entry& e) {
  return e.kind == store::kind::shared_mutex ? (e.alone ? e.capacity : 1) : e.weight;
}

/// The number of slots, as far as a holder in one of them tells it.
std::optional<std::uint32_t> slots_said_by(const std::vector<std::optional<slot_entry>>& found) {
  std::optional<std::uint32_t> slots;
  for (const auto& e : found) {
    if (!e) continue;
    slots = std::max(slots.value_or(1), e->kind == store::kind::semaphore ? e->capacity : 1);
  }
  return slots;
}

failure one_by_one() { return {errc::unsupported, "permits of this store have a weight of one"}; }

class slot_family final : public session_store {
 public:
  slot_family(std::unique_ptr<slot_store> port, clock& on)
      : port_(std::move(port)), clock_(on), slots_(on) {}

  const capabilities& can() const noexcept override { return port_->can(); }
  const std::string& url() const noexcept override { return port_->url(); }
  store::inbox& inbox() noexcept override { return port_->inbox(); }
  result<std::vector<std::string>> names() override { return port_->names(); }
  result<store::identity> identify() override { return port_->identify(); }
  result<store::facts> facts() override { return port_->facts(); }
  result<std::optional<std::chrono::microseconds>> remembers_for() override {
    return port_->remembers_for();
  }

  result<permits_reply> permits(std::string_view name, const permits_command& c) override {
    auto reply = carry_out(name, c);
    if (reply) reply->now_at = micros(clock_.now());
    if (reply && reply->outcome == permits_outcome::granted) {
      reply->expires_at = reply->now_at + c.lease_us;
    }
    return reply;
  }

  result<rate_reply> rate(std::string_view name, const rate_command& c) override {
    return port_->rate(name, c);
  }

  result<countdown_reply> countdown(std::string_view name, const countdown_command& c) override {
    auto reply = port_->countdown(name, c);
    const slot at{name, 0, store::kind::latch};
    const bool stays = c.verb == countdown_verb::wait && c.queue_lease_us > 0;
    if (reply && stays && reply->outcome == countdown_outcome::closed)
      reply->retry_after_us = next_look(at.name, entry_at(at), c.owner);
    else
      waits_no_more(name, c.owner);
    return reply;
  }

  std::vector<result<permits_reply>> execute_batch(std::span<const named_command> batch) override {
    std::vector<slot_store::extension> asked;
    std::vector<std::size_t> whose;
    std::vector<result<permits_reply>> replies(batch.size(), permits_reply{});
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const auto& c = batch[i].command;
      const auto place = slots_.of(batch[i].name, c.owner);
      if (c.verb != permits_verb::renew || !place) {
        replies[i] = permits(batch[i].name, c);
        continue;
      }
      asked.push_back({own_slots::at(batch[i].name, *place), entry_of(c), c.lease_us});
      whose.push_back(i);
    }
    const auto extended = port_->extend(asked);
    for (std::size_t i = 0; i < whose.size(); ++i) {
      const auto& [name, command] = batch[whose[i]];
      replies[whose[i]] = kept(asked[i].where, command, extended[i]);
    }
    return replies;
  }

 private:
  result<permits_reply> carry_out(std::string_view name, const permits_command& c) {
    switch (c.verb) {
      case permits_verb::acquire:
        return acquire(name, c);
      case permits_verb::renew:
        return renew_one(name, c);
      case permits_verb::release:
        return release(name, c.owner, named_by(c));
      case permits_verb::resize:
        return resize(name, c);
      case permits_verb::evict:
        return evict(name, c.owner);
      case permits_verb::inspect:
        return inspect(name, c);
      case permits_verb::notify:
        break;  // refused at construction
    }
    return failure{errc::internal, "no such verb"};
  }

  // A hand-over inside the process releases first, and the next waiter polls after a pause:
  // otherwise the waiters of other processes, which poll now and then, would never find the lock
  // free. There is no pause if the others are notified, and this process is owed a turn.
  result<permits_reply> acquire(std::string_view name, const permits_command& c) {
    if (!c.replaces) return enter(name, c);
    auto left = release(name, c.replaces, std::nullopt);
    if (!left) return left;
    std::optional<permits_reply> again;
    if (by_listening(slot_of(name, c)) && for_listeners_.may_go_on(name, clock_.now())) {
      if (auto entered = enter(name, c)) again = std::move(*entered);
    }
    permits_reply reply = again ? std::move(*again) : in_line(name, c, shortest_pause_us);
    reply.replaced = left->outcome == permits_outcome::done;
    return reply;
  }

  result<permits_reply> enter(std::string_view name, const permits_command& c) {
    if (auto away = left_to_others(name, c)) return std::move(*away);
    if (c.weight != 1 && !together(c.kind)) return one_by_one();
    for (std::uint32_t taken = 1;; ++taken) {
      slot_entry mismatch;
      const auto part =
          slots(c) == 1 ? result<std::optional<std::uint32_t>>(0U) : free_part(name, c, mismatch);
      if (!part) return part.error();
      if (mismatch.owner) return refused(name, c, mismatch);
      if (!*part) return not_granted(name, c, {});
      const auto added = port_->add(slot_of(name, c, **part), entry_of(c), c.lease_us);
      if (!added) return failed(name, c, added.error());
      if (added->outcome == slot_outcome::done) return granted(name, c, **part, *added);
      if (by_polling(c.kind)) for_pollers_.seen(name, added->store_us, clock_.now());
      // A faster client took the slot, and another one may be free. A waiter polls soon.
      if (!c.wait && taken < slots(c)) continue;
      return refused(name, c, added->other);
    }
  }

  // The owner may be in a slot or in the store's queue all the same: giving up searches for it
  // there, or leaves that queue.
  failure failed(std::string_view name, const permits_command& c, const failure& why) {
    if (why.outcome_unknown) slots_.doubt(name, c.owner, wanted(name, c), c.lease_us);
    if (c.in_order && c.wait && why.outcome_unknown)
      (void)next_look(name, wanted(name, c), c.owner);
    else
      waits_no_more(name, c.owner);
    return why;
  }

  /// Whether all permits of that kind are in one slot.
  bool together(store::kind k) const noexcept {
    return k == store::kind::shared_mutex ||
           (k == store::kind::semaphore && port_->can().semaphore);
  }
  std::uint32_t slots(const permits_command& c) const noexcept {
    return together(c.kind) ? 1 : c.capacity;
  }
  own_slots::entry wanted(std::string_view name, const permits_command& c) const noexcept {
    return entry_at(slot_of(name, c), slots(c));
  }

  // Other programs wait for mutexes. Of the other kinds there are too few turns to share out, or
  // the store has a queue.
  bool by_polling(store::kind k) const noexcept {
    return port_->can().beside_others && !port_->can().notifications && k == store::kind::mutex;
  }
  bool by_listening(const slot& at) const noexcept {
    return port_->can().beside_others && port_->can().notifications &&
           at.kind == store::kind::mutex && !at.in_order;
  }

  // Returns nothing if the store may be asked now; a call that does not wait always may.
  std::optional<result<permits_reply>> left_to_others(std::string_view name,
                                                      const permits_command& c) {
    const slot at = slot_of(name, c);
    if (!c.wait || (!by_listening(at) && !by_polling(c.kind))) return std::nullopt;
    const auto away = by_listening(at)
                          ? for_listeners_.stays_away(name, port_->heard(at), clock_.now())
                          : away_from_pollers(name);
    if (away <= pause{0}) return std::nullopt;
    permits_reply reply = in_line(name, c, 0);
    const auto least = std::max<std::int64_t>(away.count(), shortest_pause_us / 4);
    reply.retry_after_us = by_polling(c.kind) ? least : std::min(reply.retry_after_us, least);
    return reply;
  }

  pause away_from_pollers(std::string_view name) {
    const auto advice = for_pollers_.stays_away(name, clock_.now());
    if (!advice.look) return advice.away;
    const auto there = look({name}, 1);
    if (there && there->front()) for_pollers_.found_one(name, clock_.now());
    return advice.away;
  }

  // A semaphore reads all its slots first, and takes the first free one. So the name's own slot, by
  // which other kinds recognise it, is empty for long only if all are.
  // If a holder of another kind or capacity was read, `mismatch` is that one: its slot may be free
  // by now while others of its kind are in use.
  result<std::optional<std::uint32_t>> free_part(std::string_view name, const permits_command& c,
                                                 slot_entry& mismatch) {
    if (const auto mine = slots_.of(name, c.owner)) return std::optional(mine->part);
    const auto found = look(slot_of(name, c), c.capacity);
    if (!found) return found.error();
    std::optional<std::uint32_t> free;
    for (std::uint32_t i = 0; i < c.capacity; ++i) {
      const auto& e = (*found)[i];
      if (!e && !free) free = i;
      if (e && e->owner == c.owner) return std::optional(i);
      if (!e || (e->kind == c.kind && e->capacity == c.capacity)) continue;
      mismatch = *e;
      return std::optional(i);
    }
    return free;
  }

  // A semaphore that lost a slot to a faster client is not a mismatch.
  result<permits_reply> refused(std::string_view name, const permits_command& c,
                                const slot_entry& other) {
    const bool same = other.kind == c.kind && other.capacity == c.capacity;
    if (!other.owner || same) return not_granted(name, c, other);
    permits_reply reply;
    reply.outcome =
        other.kind != c.kind ? permits_outcome::kind_mismatch : permits_outcome::capacity_mismatch;
    reply.found.kind = other.kind;
    reply.found.capacity = other.capacity;
    waits_no_more(name, c.owner);
    return reply;
  }

  permits_reply granted(std::string_view name, const permits_command& c, std::uint32_t part,
                        const slot_reply& added) {
    slots_.hold(name, c.owner, entry_at(slot_of(name, c, part)), c.lease_us);
    permits_reply reply{.outcome = permits_outcome::granted,
                        .fence = added.fence,
                        .one_turn = (added.fence & store::fence_of_others) != 0};
    if (by_listening(slot_of(name, c))) {
      const auto heard = port_->heard(slot_of(name, c));
      reply.one_turn = for_listeners_.granted(name, heard, clock_.now()) || reply.one_turn;
    }
    if (by_polling(c.kind)) for_pollers_.granted(name, added.store_us, clock_.now());
    waits_no_more(name, c.owner);
    return reply;
  }

  permits_reply not_granted(std::string_view name, const permits_command& c,
                            const slot_entry& other) {
    const auto holder = other.owner ? to_string(other.owner) : other.note;
    if (c.wait) return in_line(name, c, other.left_us, holder);
    waits_no_more(name, c.owner);
    return {.outcome = permits_outcome::busy};
  }

  // The reply to a waiter; it also polls when the lease in its way must have ended. If it has
  // ended, and the store keeps the entry for a while longer, the waiter polls as before.
  permits_reply in_line(std::string_view name, const permits_command& c, std::int64_t left_us,
                        std::string_view holder = {}) {
    const auto look = next_look(name, wanted(name, c), c.owner, holder);
    return {.outcome = permits_outcome::queued,
            .retry_after_us = left_us > ended ? std::min(look, sum(1'000, left_us)) : look,
            .position = 1};
  }

  // The pause until the next poll: a third of the time waited so far. It is shorter while the
  // holder changes from poll to poll, because others then take the lock again immediately, and it
  // is free for a moment only. If the store notifies, the first poll follows soon, because a
  // release between the first request and the start of listening would be missed.
  std::int64_t next_look(std::string_view name, const own_slots::entry& what, const owner_id& owner,
                         std::string_view holder = {}) {
    const auto now = clock_.now();
    const slot at = own_slots::at(name, what);
    const auto wait = slots_.waits(name, what, owner, now, holder);
    const auto waited = micros(now) - micros(wait.since);
    if (port_->can().notifications) {
      if (wait.begins) return listens(at, owner);
      return overdue(at, now) ? often(waited) : longest_pause_where_told_us;
    }
    const bool hot = by_polling(at.kind) && wait.changed_at != boot_time{} &&
                     now < wait.changed_at + std::chrono::microseconds(hot_us);
    return hot ? often(waited) : std::clamp(waited / 3, shortest_pause_us, longest_pause_us);
  }

  static std::int64_t often(std::int64_t waited_us) {
    return std::clamp(waited_us / hot_part, shortest_pause_us, longest_pause_us);
  }

  bool overdue(const slot& at, boot_time now) {
    return by_listening(at) && for_listeners_.overdue(at.name, port_->heard(at), now);
  }

  std::int64_t listens(const slot& at, const owner_id& owner) {
    port_->wait_for(at, owner);
    return shortest_pause_us;
  }

  std::optional<own_slots::entry> waits_no_more(std::string_view name, const owner_id& owner) {
    const auto what = slots_.waits_no_more(name, owner);
    if (what && port_->can().notifications) port_->done_waiting(own_slots::at(name, *what), owner);
    return what;
  }

  // A reader that cannot become a writer because others are in its way has not lost its lock.
  result<permits_reply> resize(std::string_view name, const permits_command& c) {
    if (c.kind != store::kind::shared_mutex) return one_by_one();
    const auto resized = port_->resize({name, 0, c.kind}, entry_of(c), c.lease_us);
    if (!resized || resized->outcome != slot_outcome::taken)
      return kept(slot_of(name, c), c, resized);
    return permits_reply{.outcome = permits_outcome::busy};
  }

  result<permits_reply> renew_one(std::string_view name, const permits_command& c) {
    const auto known = slots_.of(name, c.owner);
    const auto place = known ? known : named_by(c);
    if (!place) return absent();
    const slot at = own_slots::at(name, *place);
    return kept(at, c, port_->extend(at, entry_of(c), c.lease_us));
  }

  // A permit may come from another process: then the command says what it belongs to.
  static std::optional<own_slots::entry> named_by(const permits_command& c) {
    if (!c.outlives_session) return std::nullopt;
    return own_slots::entry{0, c.kind};
  }

  result<permits_reply> kept(const slot& at, const permits_command& c,
                             const result<slot_reply>& extended) {
    if (!extended) return extended.error();
    const auto now_at = micros(clock_.now());
    if (extended->outcome == slot_outcome::done) {
      slots_.hold(at.name, c.owner, entry_at(at), c.lease_us);
      return permits_reply{.outcome = permits_outcome::granted,
                           .fence = extended->fence,
                           .expires_at = now_at + c.lease_us,
                           .now_at = now_at};
    }
    slots_.forget(at.name, c.owner);
    return permits_reply{.outcome = permits_outcome::absent, .now_at = now_at};
  }

  // An owner that gave up a wait may have acquired the lock in an attempt whose answer was lost, so
  // its slot is searched for. The same step leaves a queue of the store. If the release fails, it
  // is repeated, and needs the same knowledge then.
  result<permits_reply> release(std::string_view name, const owner_id& owner,
                                std::optional<own_slots::entry> named) {
    auto wanted = waits_no_more(name, owner);
    if (!wanted) wanted = slots_.doubted(name, owner);
    auto reply = leave(name, owner, named, wanted);
    if (reply)
      slots_.forget(name, owner);
    else if (wanted)
      slots_.doubt(name, owner, *wanted, 0);
    return reply;
  }

  result<permits_reply> leave(std::string_view name, const owner_id& owner,
                              std::optional<own_slots::entry> named,
                              const std::optional<own_slots::entry>& wanted) {
    if (const auto known = slots_.of(name, owner)) named = known;
    if (!named && wanted && wanted->in_order) named = wanted;
    const auto place = named ? result<std::optional<own_slots::entry>>(named)
                             : find(name, owner, wanted ? wanted->slots : 0);
    if (!place) return place.error();
    if (!*place) return absent();
    const slot at = own_slots::at(name, **place);
    const auto removed = port_->remove(at, owner);
    if (!removed) return removed.error();
    gave_back(at, *removed);
    permits_reply reply;
    reply.outcome =
        removed->outcome == slot_outcome::done ? permits_outcome::done : permits_outcome::absent;
    return reply;
  }

  void gave_back(const slot& at, const slot_reply& removed) {
    if (removed.outcome != slot_outcome::done) return;
    const auto now = clock_.now();
    if (by_listening(at))
      for_listeners_.released(at.name, removed.others_listen, port_->heard(at), now);
    if (by_polling(at.kind)) for_pollers_.released(at.name, now);
  }

  static permits_reply absent() { return {.outcome = permits_outcome::absent}; }

  result<permits_reply> evict(std::string_view name, const owner_id& owner) {
    const auto found = look_at_all({name});
    if (!found) return found.error();
    permits_reply reply;
    for (const auto& [part, e] : everybody(*found)) {
      if (!e->owner || (owner && e->owner != owner)) continue;
      const auto removed = port_->remove({name, part, e->kind}, e->owner);
      if (!removed) return removed.error();
      if (removed->gone_before) return perhaps_taken_away();
      reply.position += removed->outcome == slot_outcome::done ? 1 : 0;
    }
    reply.outcome = reply.position > 0 ? permits_outcome::done : permits_outcome::absent;
    return reply;
  }

  result<permits_reply> inspect(std::string_view name, const permits_command& c) {
    const auto found = look_at_all(slot_of(name, c));
    if (!found) return found.error();
    permits_reply reply;
    const std::int64_t now_at = micros(clock_.now());
    for (const auto& [part, e] : everybody(*found)) {
      reply.found.kind = e->kind;
      reply.found.capacity = std::max(reply.found.capacity, e->capacity);
      if (e->weight == 0) continue;
      reply.found.last_fence = std::max(reply.found.last_fence, e->fence);
      reply.found.holders.push_back({e->owner,
                                     weight_of(*e),
                                     e->fence,
                                     e->left_us == 0 ? 0 : sum(now_at, e->left_us),
                                     e->since_wall_at,
                                     {},
                                     e->note,
                                     false});
    }
    if (!found->empty() && found->front() && found->front()->free)
      count_others(*found->front()->free, c, reply.found);
    return reply;
  }

  // Of the capacity that the request names, adds the part that is neither free nor held by a known
  // holder, as held by other programs.
  static void count_others(std::int64_t free, const permits_command& c, permits_record& found) {
    std::int64_t known = free;
    for (const auto& h : found.holders) known += h.weight;
    const std::int64_t of = c.kind == found.kind ? c.capacity : 0;
    if (found.capacity == 0) found.capacity = static_cast<std::uint32_t>(std::max(of, known));
    if (of <= known) return;
    holder others;
    others.weight = static_cast<std::uint32_t>(of - known);
    others.note = foreign_note("other programs");
    found.holders.push_back(std::move(others));
  }

  /// Searches `slots` slots; with 0 the number is unknown.
  result<std::optional<own_slots::entry>> find(std::string_view name, const owner_id& owner,
                                               std::uint32_t slots) {
    const auto found = slots > 0 ? look({name}, slots) : look_at_all({name});
    if (!found) return found.error();
    for (const auto& [part, e] : everybody(*found)) {
      if (e->owner == owner) return std::optional(own_slots::entry{part, e->kind});
    }
    return std::optional<own_slots::entry>{};
  }

  // The slot's number, and its holder.
  using standings = std::vector<std::pair<std::uint32_t, const slot_entry*>>;
  static standings everybody(const std::vector<std::optional<slot_entry>>& found) {
    standings all;
    for (std::uint32_t i = 0; i < found.size(); ++i) {
      if (!found[i]) continue;
      all.emplace_back(i, &*found[i]);
      for (const auto& e : found[i]->beside) all.emplace_back(i, &e);
    }
    return all;
  }

  // A holder's entry tells how many slots there are. As long as no holder is found, there may be
  // one in a later slot.
  result<std::vector<std::optional<slot_entry>>> look_at_all(const slot& at) {
    const auto& can = port_->can();
    if (!can.unit_permits || can.semaphore) return look(at, 1);
    std::vector<std::optional<slot_entry>> found;
    std::uint32_t all = can.max_slots, until = std::min(first_look, all);
    while (found.size() < all) {
      auto more = look(at, until, static_cast<std::uint32_t>(found.size()));
      if (!more) return more;
      std::move(more->begin(), more->end(), std::back_inserter(found));
      const auto said = slots_said_by(*more);
      if (said) all = std::clamp(*said, until, can.max_slots);
      until = said ? all : std::min(until * next_look_times, all);
    }
    return found;
  }

  result<std::vector<std::optional<slot_entry>>> look(slot at, std::uint32_t until,
                                                      std::uint32_t from = 0) {
    std::vector<slot> all;
    all.reserve(until - from);
    for (at.part = from; at.part < until; ++at.part) all.push_back(at);
    return port_->look(all);
  }

  const std::unique_ptr<slot_store> port_;
  clock& clock_;
  own_slots slots_;
  turns_of_listeners for_listeners_;
  turns_of_pollers for_pollers_;
};

}  // namespace

std::unique_ptr<session_store> over(std::unique_ptr<slot_store> port, clock& on) {
  return std::make_unique<slot_family>(std::move(port), on);
}

}  // namespace holdfast::family
