#include "family/contender_latch.hpp"

#include <algorithm>

#include "family/record_codec.hpp"
#include "kernel/countdown.hpp"
#include "kernel/permits.hpp"

namespace holdfast::family {

using namespace store;
using as_of = contender_store::as_of;

namespace {

/// How often a change is retried after another client replaced the record: many count down at once,
/// and all but one of them lose.
constexpr int max_attempts = 1'000;
/// The number of arrivals that are remembered, in case they are repeated. Bounds the record even if
/// the store has no clock to forget them by.
constexpr std::ptrdiff_t max_arrivals = 1'000;
/// What a waiter watches; the key in own_entry.
constexpr std::string_view the_record = "record";

bool knows(const countdown_record& r, const owner_id& owner) {
  return std::any_of(r.arrivals.begin(), r.arrivals.end(),
                     [&](const auto& a) { return a.owner == owner; });
}

bool uses(countdown_verb verb) {
  return verb == countdown_verb::arrive || verb == countdown_verb::wait;
}

std::uint32_t own_share(const countdown_command& c) {
  return c.verb == countdown_verb::arrive ? c.drop : 0;
}

// When a waiter has to keep the latch again: at a third of the time for which the latch is kept, so
// that two attempts fit into it.
boot_time keeps_next(const own_entry& mine, const countdown_command& c) {
  return after(mine.kept_at, c.keep_us / 3);
}

// A slightly longer lifetime of the latch is not worth a write. The part left out must be less than
// what a waiter adds at each poll.
bool worth_writing(const countdown_record& was, const countdown_record& is,
                   const countdown_command& c) {
  countdown_record same = is;
  same.arrivals = was.arrivals;
  same.expires_at = was.expires_at;
  const bool gained = is.arrivals.size() > was.arrivals.size();
  const bool forgets_all = is.count == 0 && is.arrivals.empty() && !was.arrivals.empty();
  return gained || forgets_all || !(same == was) || is.expires_at - was.expires_at > c.keep_us / 8;
}

}  // namespace

struct contender_latch::state {
  countdown_record record;
  contender_store::revision version;
  moment now;
};

result<contender_latch::state> contender_latch::read(std::string_view name,
                                                     const countdown_command& c, interest what) {
  const auto ask = [&](contender_store::alarm call) {
    return port_.record(name, what != interest::none, std::move(call));
  };
  const auto is_there = [](const auto& said) { return said.ok(); };
  auto found = what == interest::is_called ? watches_.read(name, the_record, c.owner, ask, is_there)
                                           : ask(nullptr);
  if (!found) return std::move(found.error());
  const auto now = port_.time();
  if (!now) return now.error();
  state s{{}, found->version, *now};
  if (!found->version.is_of_a_record()) return s;
  auto any = decode(found->text);
  if (!any) return std::move(any.error());
  auto* const latch = std::get_if<countdown_record>(&*any);
  if (latch == nullptr) return failure{errc::corrupt, "its record is not that of a latch"};
  s.record = std::move(*latch);
  return s;
}

// A latch that has ended keeps the arrivals that may be repeated; otherwise a repeated arrival
// would count again.
result<std::optional<contender_store::revision>> contender_latch::store_back(
    std::string_view name, state& s, const countdown_command& c) {
  auto& all = s.record.arrivals;
  if (std::ssize(all) > max_arrivals) all.erase(all.begin(), all.end() - max_arrivals);
  std::string text;
  const bool remembers = !all.empty() && c.verb != countdown_verb::remove;
  if (s.record.count != 0 || remembers) encode(s.record, text);
  if (text.empty() && !s.version.is_of_a_record()) return std::optional(s.version);
  return port_.replace(name, text, s.version, c.keep_us);
}

// Whether another kind uses the name: a contender that holds or waits for a lock or a semaphore.
result<bool> contender_latch::in_use_as(std::string_view name, countdown_reply& reply) {
  const auto line = port_.contenders(name, as_of::latest, nullptr);
  if (!line) return line.error();
  const auto other = std::find_if(line->begin(), line->end(),
                                  [](const contender& x) { return x.kind != store::kind::latch; });
  if (other == line->end()) return false;
  reply = {};
  reply.outcome = countdown_outcome::kind_mismatch;
  reply.found_kind = other->kind;
  return true;
}

// Notes the first attempt only. `asked` is the time before that attempt was sent: from then on it
// may have been carried out, however long the session then waited for the answer. A repetition can
// only take effect later.
void contender_latch::note_unheard(std::string_view name, const countdown_command& c,
                                   const countdown_record& before, boot_time asked) {
  const bool makes = before.count == 0;
  const bool matters = c.verb == countdown_verb::arrive || (makes && uses(c.verb));
  if (!matters || unheard_.find(name, c.owner)) return;
  const auto latest = before.arrivals.empty() ? owner_id{} : before.arrivals.back().owner;
  unheard_.put(name, c.owner, {latest, asked, makes}, std::max(c.repeats_us, kernel::remember_us));
}

// Whether it cannot be known if the arrival counted: its id may have been dropped in favour of
// others, or may have been in a latch that is over.
bool contender_latch::cannot_be_told(std::string_view name, const countdown_command& c,
                                     const countdown_record& now) const {
  if (c.verb != countdown_verb::arrive) return false;
  const auto tried = unheard_.find(name, c.owner);
  if (!tried || knows(now, c.owner) || knows(now, tried->latest_before)) return false;
  // A latch that existed already may have ended as soon as the arrival was written.
  const bool has_ended = !tried->makes && now.count == 0;
  const bool may_be_another = has_ended || clock_.now() >= after(tried->since, c.keep_us);
  return may_be_another || std::ssize(now.arrivals) >= max_arrivals;
}

// True if this owner has made the latch, or may have, and has not checked the queue since.
bool contender_latch::owes_look(std::string_view name, const countdown_command& c,
                                const countdown_record& was, const countdown_record& is) const {
  if (!uses(c.verb) || was.count == 0 || is.count == 0) return false;
  const auto tried = unheard_.find(name, c.owner);
  return tried && tried->makes && (c.verb == countdown_verb::wait || knows(was, c.owner));
}

// Reads the queue after the record was written. A contender that entered meanwhile sees the record,
// or this session sees the contender, so at least one of them stops. If the queue cannot be read,
// the outcome is unknown. `ours`: the version of the record that is then removed.
status contender_latch::look_behind(std::string_view name, std::optional<revision> ours,
                                    countdown_reply& reply) {
  const auto late = in_use_as(name, reply);
  if (!late) {
    failure unknown = late.error();
    unknown.outcome_unknown = true;
    return unknown;
  }
  if (*late && ours) (void)port_.replace(name, {}, *ours, 0);
  return done{};
}

// Returns nothing if another session was faster; then the step has to be repeated.
result<std::optional<countdown_reply>> contender_latch::step(std::string_view name,
                                                             const countdown_command& c,
                                                             interest what) {
  const boot_time asked = clock_.now();
  auto s = read(name, c, what);
  if (!s) return std::move(s.error());
  const countdown_record was = s->record;
  if (cannot_be_told(name, c, was)) {
    return failure{
        errc::unavailable,
        "the reply to a count_down was lost, and the store can no longer tell whether it counted: "
        "since then too many others have counted down, or the latch has ended; remaining() shows "
        "what is left",
        true};
  }
  auto reply = kernel::apply(s->record, c, s->now);
  s->record.waiting.clear();
  const bool absent = was.count == 0;
  const bool first = absent && uses(c.verb);
  const bool may_be_other = absent && c.verb != countdown_verb::leave;
  const auto taken = may_be_other ? in_use_as(name, reply) : result<bool>(false);
  if (!taken) return taken.error();
  if (owes_look(name, c, was, s->record)) {
    // A latch that others have counted down since is left to them.
    const bool only_we = s->record.remaining + own_share(c) == s->record.count;
    const auto ours = only_we ? std::optional(s->version) : std::nullopt;
    if (auto sure = look_behind(name, ours, reply); !sure) return std::move(sure.error());
    unheard_.forget(name, c.owner);
    return std::optional(std::move(reply));
  }
  if (*taken || !worth_writing(was, s->record, c)) return std::optional(std::move(reply));
  const auto written = store_back(name, *s, c);
  if (!written) {
    if (written.error().outcome_unknown) note_unheard(name, c, was, asked);
    return written.error();
  }
  unheard_.forget(name, c.owner);
  if (!*written) return std::optional<countdown_reply>{};
  if (!first) return std::optional(std::move(reply));
  if (auto sure = look_behind(name, *written, reply); !sure) {
    note_unheard(name, c, was, asked);
    return std::move(sure.error());
  }
  return std::optional(std::move(reply));
}

result<countdown_reply> contender_latch::change(std::string_view name, const countdown_command& c,
                                                interest what) {
  for (int i = 0; i < max_attempts; ++i) {
    auto reply = step(name, c, what);
    if (!reply) return std::move(reply.error());
    if (*reply) return std::move(**reply);
  }
  return failure{errc::unavailable, "other programs changed the latch during each attempt"};
}

status contender_latch::enter(std::string_view name, const countdown_command& c) {
  if (auto gone = give_up_first_(name, c.owner); !gone) return gone;
  const contender who{{}, c.owner, store::kind::latch, c.count};
  const contender_data says{0, 0, 0, c.queue_lease_us, std::string(c.peer), std::string(c.note)};
  entries_.put(
      c.owner,
      {.name = std::string(name), .ends = after(clock_.now(), c.queue_lease_us), .unsure = true});
  auto in = port_.enter(name, who, says, {});
  if (!in) return std::move(in.error());
  entries_.change(name, c.owner, [&](own_entry& p) {
    p.nodes = {std::move(in->node)};
    p.session = in->session;
    p.unsure = in->repeated;
  });
  return done{};
}

status contender_latch::leave(std::string_view name, const owner_id& owner) {
  const auto mine = entries_.find(name, owner);
  if (!mine) return done{};
  entries_.erase(name, owner);
  bool unsure = mine->unsure;
  if (!unsure) {
    const auto left = port_.leave(name, mine->nodes);
    if (left) return done{};
    unsure = left.error().outcome_unknown;  // it may take effect later
  }
  // Removed in the background; the end of the session would remove it as well.
  entries_.later(
      {own_entries::job::kind::give_up, mine->name, owner, mine->nodes, unsure, clock_.now()});
  return done{};
}

result<countdown_reply> contender_latch::wait(std::string_view name, const countdown_command& c) {
  const boot_time asked = clock_.now();
  auto mine = entries_.find(name, c.owner);
  // A waiter whose node is not known, or has ended with its session, enters anew.
  if (mine && (mine->nodes.empty() || is_of_an_ended_session(*mine, port_))) {
    (void)leave(name, c.owner);
    mine.reset();
  }
  const bool quiet = mine && mine->nothing_new() && asked < keeps_next(*mine, c);
  if (quiet && c.queue_lease_us > 0) {
    entries_.change(name, c.owner, [&](own_entry& p) {
      p.ends = after(clock_.now(), c.queue_lease_us);
      ++p.quiet;
    });
    return countdown_reply{.outcome = countdown_outcome::closed,
                           .retry_after_us = kernel::latch_retry_after_us(c.keep_us)};
  }
  const bool is_called = mine && mine->watched.contains(std::string(the_record));
  auto reply = change(name, c, is_called ? interest::waits : interest::none);
  const bool closed = reply && reply->outcome == countdown_outcome::closed;
  if (!closed || c.queue_lease_us == 0) return (void)leave(name, c.owner), reply;
  // The watch is in place, unless the alarm was called meanwhile: then the waiter polls again.
  if (is_called) {
    entries_.change(name, c.owner, [&](own_entry& p) {
      p.ends = after(clock_.now(), c.queue_lease_us);
      p.quiet = 0;
      p.kept_at = asked;
    });
    return reply;
  }
  if (!entries_.find(name, c.owner)) {
    if (auto in = enter(name, c); !in) return std::move(in.error());
  }
  entries_.change(name, c.owner, [&](own_entry& p) {
    p.ends = after(clock_.now(), c.queue_lease_us);
    p.quiet = 0;
    p.kept_at = asked;
    p.watched = {{std::string(the_record), 0}};
    p.waits_for = {std::string(the_record)};
    p.looks[std::string(the_record)].begins(asked);
  });
  reply = change(name, c, interest::is_called);
  if (!reply) {
    entries_.forget_watched(name, c.owner);  // perhaps there is no watch
  } else {
    entries_.change(name, c.owner, [&](own_entry& p) {
      p.looks[std::string(the_record)].ended(clock_.now(), std::to_string(reply->remaining));
    });
  }
  const bool opened = reply && reply->outcome != countdown_outcome::closed;
  if (opened) (void)leave(name, c.owner);
  return reply;
}

// On a contender store the record does not contain the waiters, so this reads them from the queue.
status contender_latch::add_waiters(std::string_view name, countdown_record& found) {
  auto line = port_.contenders(name, as_of::seen, nullptr);
  if (!line) return std::move(line.error());
  std::erase_if(*line, [](const contender& x) { return !x.owner; });
  const auto says = port_.read(name, *line);
  if (!says) return says.error();
  for (std::size_t i = 0; i < line->size(); ++i) {
    const auto& contender_data = (*says)[i];
    if (!contender_data) continue;
    found.waiting.push_back({(*line)[i].owner, 1, 0, 0, contender_data->lease_us,
                             contender_data->since_wall_at, contender_data->peer,
                             contender_data->note});
  }
  return done{};
}

result<countdown_reply> contender_latch::apply(std::string_view name, const countdown_command& c) {
  if (c.verb == countdown_verb::wait) return wait(name, c);
  if (c.verb == countdown_verb::leave) {
    (void)leave(name, c.owner);
    return countdown_reply{};
  }
  auto reply = change(name, c);
  if (reply && c.verb == countdown_verb::inspect && reply->found.count != 0) {
    if (auto ok = add_waiters(name, reply->found); !ok) return std::move(ok.error());
    for (auto& w : reply->found.waiting) w.expires_at += reply->now_at;
  }
  return reply;
}

result<bool> contender_latch::forget_if_over(std::string_view name) {
  const auto reply = change(name, {});
  if (!reply) return reply.error();
  return reply->found.count == 0;
}

result<bool> contender_latch::make_way(std::string_view name) {
  for (int i = 0; i < max_attempts; ++i) {
    auto s = read(name, {}, interest::none);
    if (!s) return std::move(s.error());
    (void)kernel::apply(s->record, {}, s->now);
    if (s->record.count != 0) return false;
    if (!s->version.is_of_a_record()) return true;
    const auto gone = port_.replace(name, {}, s->version, 0);
    if (!gone) return gone.error();
    if (*gone) return true;
  }
  return failure{errc::unavailable, "other programs changed the latch during each attempt"};
}

}  // namespace holdfast::family
