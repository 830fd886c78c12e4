#include "store/sql/row_store.hpp"

#include <algorithm>

#include "store/sql/is_free.hpp"
#include "store/sql/record_bound.hpp"

namespace holdfast::store::sql {

namespace {

constexpr std::size_t free_rows_kept = 256;
constexpr std::chrono::milliseconds patience_at_closing{200};
/// How many bytes of records go to the server at once: MariaDB takes 16 MiB, and a record doubles
/// its length on its way.
constexpr std::size_t most_at_once = 4U << 20;
/// How many broken connections are replaced before the request fails.
constexpr int broken_connections_borne = 2;
/// How often a transaction is repeated that others have thwarted.
constexpr int defeats_borne = 20;
/// How many changes of waiting threads go to the server together.
constexpr std::size_t most_together = 32;

}  // namespace

failure row_store::told_after(failure why, const std::optional<failure>& first) {
  if (first) why.what = first->what + "; connecting again: " + why.what;
  return why;
}

// For a caller, `busy` would mean that the lock is held.
failure row_store::not_busy(failure why) {
  if (why.code == errc::busy) why.code = errc::unavailable;
  return why;
}

// The transaction was rolled back, or there was no time for it.
failure row_store::took_too_long() {
  return {errc::unavailable,
          "the request took longer than command_timeout: raise it, send less at once, or find out "
          "why the server or this machine is slow"};
}

/// A step in progress.
struct row_store::change {
  state_store::step step;
  row before{};
  const std::string* next = nullptr;  ///< the new record
  bool guessed = false;
  bool sent = false;          ///< a replacement was sent, and its outcome is unknown
  bool sent_before = false;   ///< … over a connection that broke, perhaps to another server
  bool stored = false;        ///< it was found in the row …
  std::int64_t found_at = 0;  ///< … by this server (row_link::server_number)
  bool over = false;
  status outcome = done{};

  /// Returns true if there is something to write.
  bool decide(bool guess) {
    guessed = guess;
    next = stored_instead(
        step.change->apply(before.record,
                           {before.now_at, std::max(before.now_at, before.fence_floor)}),
        before.record);
    if (next == nullptr || *next == before.record) return false;
    if (next->size() <= longest_read) return true;
    end(grown_too_long(step.name));
    return false;
  }
  /// True if the row now has what was sent before the connection broke: the change was carried out.
  bool was_done(const row& now) const {
    return (sent || stored) && step.change->is_recognizable() &&
           (now.there ? now.record == *next : next == of_nobody());
  }
  replacement wanted(boot_time deadline, const server_time& read) const {
    const auto version =
        before.there ? before.version : std::max(before.now_at, before.fence_floor);
    replacement r{step.name, before.there, version, *next, {}};
    if (guessed) {
      r.assumed_now = before.now_at;
    } else {
      r.until_at = read.at(deadline);
    }
    return r;
  }
  void end(status how) {
    outcome = std::move(how);
    over = true;
  }
};

// ---- several steps

// Goes in the order of the names, so that two batches never wait for each other. Steps for the same
// name run one after the other.
std::vector<status> row_store::transact(std::span<const state_store::step> steps) {
  std::vector<change> all(steps.size());
  changes todo;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    all[i].step = steps[i];
    todo.push_back(&all[i]);
  }
  std::sort(todo.begin(), todo.end(), [](const change* a, const change* b) {
    return std::pair(a->step.name, a) < std::pair(b->step.name, b);
  });
  while (!todo.empty()) {
    changes now, later;
    for (change* c : todo) {
      const bool same = !now.empty() && now.back()->step.name == c->step.name;
      (same ? later : now).push_back(c);
    }
    run(now);
    todo = std::move(later);
  }
  sweep_if_many();
  std::vector<status> outcomes;
  outcomes.reserve(all.size());
  for (change& c : all) outcomes.push_back(std::move(c.outcome));
  return outcomes;
}

/// Changes whose thread waits for a connection.
struct row_store::waiting_changes : link_pool::request {
  explicit waiting_changes(changes& c) : all(c) {}
  changes& all;
};

// Returns no connection if another thread has made the changes. It only tried once: what is left is
// up to this thread.
result<std::optional<link_pool::loan>> row_store::borrow(changes& open, boot_time deadline) {
  waiting_changes mine{open};
  while (true) {
    auto link = pool_.borrow(deadline, mine);
    if (!link || *link) return link;
    std::erase_if(open, [](const change* c) { return c->over; });
    if (open.empty()) return link;
    for (change* c : open) c->sent_before = c->sent_before || c->sent;
  }
}

void row_store::run(changes open) {
  const boot_time deadline = boot_clock::now() + timeout_;
  std::optional<failure> first;
  auto turn = borrow(open, deadline);
  if (turn && !*turn) return;
  auto link = turn ? result<link_pool::loan>(std::move(**turn)) : std::move(turn.error());
  for (int broken = 0, defeats = 0;;) {
    const auto settled =
        link ? settle(**link, open, deadline) : status(told_after(link.error(), first));
    if (settled) return;
    const errc code = settled.error().code;
    const bool late = code == errc::timed_out, in_time = boot_clock::now() < deadline;
    const bool undone = link && code == errc::busy;
    const bool broke = link && !undone && !late && may_do_better(*link, settled.error());
    const bool again = in_time && ((undone && ++defeats <= defeats_borne) ||
                                   (broke && ++broken <= broken_connections_borne));
    if (again && undone && (*link)->usable()) continue;
    if (broke) pool_.drop_idle();  // even if no time is left: for later requests
    if (again) {
      if (!first) first = settled.error();
      for (change* c : open) c->sent_before = c->sent_before || c->sent;
      link = pool_.replace(std::move(*link), deadline);
      continue;
    }
    for (change* c : open) {
      auto f = late ? took_too_long() : not_busy(settled.error());
      // A change sent over a broken connection may have been carried out before other sessions
      // wrote. Or it may still reach its server, or wait there, while the present server, which may
      // lag behind, refuses it.
      f.outcome_unknown = c->sent || c->sent_before;
      c->end(std::move(f));
    }
    return;
  }
}

status row_store::settle(row_link& link, changes& open, boot_time deadline) {
  for (const auto way : {&row_store::replace_guessed, &row_store::replace_read}) {
    const auto gone = (this->*way)(link, open, deadline);
    std::erase_if(open, [](const change* c) { return c->over; });
    if (!gone || open.empty()) return gone;
  }
  while (!open.empty()) {
    if (boot_clock::now() >= deadline) return failure{errc::timed_out, {}};
    if (auto gone = change_locked(link, *open.back(), deadline); !gone) return gone;
    open.pop_back();
  }
  return done{};
}

// ---- three ways to change a row

// A change that was sent over a broken connection must be looked up first. Until that query it is
// also unknown whether there is anything left to do. If the server refuses the changes of several
// threads, because of a row that another client has locked, for example, then each thread tries its
// own.
status row_store::replace_guessed(row_link& link, const changes& open, boot_time deadline) {
  if (!link.keeps_its_server()) return done{};
  changes some;
  for (change* c : open) {
    if (guess(*c, link.server_number()) && c->decide(true)) some.push_back(c);
  }
  if (some.empty()) return done{};
  const auto own = some.size();
  link_pool::taken others{pool_};
  take_others(others, some, link.server_number());
  auto gone = replace(link, some, deadline, {});
  const bool refused = !gone && link.usable() && was_refused(link, gone.error());
  return refused && some.size() > own ? status(done{}) : gone;
}

// One guess for each change: if it was wrong, or was refused, the row must be read.
bool row_store::guess(change& one, std::int64_t server) {
  auto row =
      one.sent || one.stored || one.guessed ? std::nullopt : known_.guess(one.step.name, server);
  if (row) one.before = std::move(*row);
  return row.has_value();
}

// Takes changes from threads that wait for a connection: changes of one name each, of other names,
// whose rows can be guessed, so that they need no read. Their threads wait until this thread has
// the answer. All requests have the same time-out, and this one is usually the oldest; a request
// that came back may be taken by a thread with a slightly later deadline. If there is no memory for
// them, each of their threads makes its own change. Together they are short: a row that can be
// guessed has a few kilobytes.
void row_store::take_others(link_pool::taken& others, changes& into, std::int64_t server) {
  using wish = link_pool::wish;
  const auto own = static_cast<std::ptrdiff_t>(into.size());
  pool_.take(others, [&](link_pool::request& r) noexcept {
    if (into.size() >= most_together) return wish::enough;
    auto& waiting = static_cast<waiting_changes&>(r).all;
    change& one = *waiting.front();
    const bool fits = waiting.size() == 1 &&
                      std::none_of(into.begin(), into.end(),
                                   [&](const change* c) { return c->step.name == one.step.name; });
    try {
      if (!fits || !guess(one, server)) return wish::leave;
      into.push_back(&one);
      return wish::take;
    } catch (...) {
      return wish::enough;
    }
  });
  const auto left_to_its_thread = [](change* c) noexcept {
    try {
      return !c->decide(true);
    } catch (...) {
      return true;
    }
  };
  into.erase(std::remove_if(into.begin() + own, into.end(), left_to_its_thread), into.end());
  std::sort(into.begin(), into.end(),
            [](const change* a, const change* b) { return a->step.name < b->step.name; });
}

status row_store::replace_read(row_link& link, const changes& open, boot_time deadline) {
  std::vector<std::string_view> names;
  for (const change* c : open) names.push_back(c->step.name);
  const auto sent = boot_clock::now();
  auto rows = link.read(names, deadline);
  if (!rows) return std::move(rows.error());
  const server_time read = time_of(*rows);
  known_.clock_said(rows->front().now_at, sent, link.server_number());
  changes some;
  for (std::size_t i = 0; i < open.size(); ++i) {
    found(*open[i], std::move((*rows)[i]), link.server_number());
    if (!open[i]->over) some.push_back(open[i]);
  }
  return replace(link, some, deadline, read);
}

// Ends the change if there is nothing left to do. A change that was carried out is written once
// more: the server may have ended the wait for its standby together with the connection, and the
// answer to the second write proves that a standby has the first one. If another session has
// replaced it since, the same server has answered that session, which read it. Another server may
// lack it.
void row_store::found(change& one, row now, std::int64_t server) {
  if (now.too_long) return one.end(record_too_long());
  if (one.was_done(now) && now.there) {
    one.stored = true;
    one.found_at = server;
    one.before = std::move(now);
    return;
  }
  const bool replaced = one.stored && server != 0 && server == one.found_at && now.there &&
                        now.version > one.before.version;
  if (replaced || one.was_done(now)) return one.end(done{});
  if (one.sent || one.stored) one.step.change->may_have_been_stored();
  one.sent = one.stored = false;
  one.before = std::move(now);
  if (one.decide(false) || one.over) return;
  if (one.before.there && is_free(one.before.record)) note_free(one.step.name);
  known_.learn(one.step.name, one.before.version, std::move(one.before), server);
  one.end(done{});
}

// Sends them in portions: a server refuses a request that is too long as a whole.
status row_store::replace(row_link& link, std::span<change* const> all, boot_time deadline,
                          const server_time& read) {
  while (!all.empty()) {
    std::size_t bytes = 0, count = 0;
    for (const change* c : all) {
      bytes += c->next->size();
      if (count > 0 && bytes > most_at_once) break;
      ++count;
    }
    if (auto gone = replace_some(link, all.first(count), deadline, read); !gone) return gone;
    all = all.subspan(count);
  }
  return done{};
}

status row_store::replace_some(row_link& link, std::span<change* const> some, boot_time deadline,
                               const server_time& read) {
  std::vector<replacement> wanted;
  wanted.reserve(some.size());
  const bool asks_time = known_.clock_ages();
  for (change* c : some) {
    wanted.push_back(c->wanted(deadline, read));
    wanted.back().asks_time = asks_time;
    c->sent = true;
  }
  const auto sent = boot_clock::now();
  const auto outcomes = link.replace(wanted, deadline);
  const bool nothing_done = !outcomes && was_refused(link, outcomes.error());
  if (outcomes || nothing_done) {
    for (change* c : some) c->sent = false;
  }
  // The transaction may still be open if the connection is not usable any more: only its end undoes
  // what was changed.
  if (!outcomes && outcomes.error().code == errc::busy && link.usable()) return done{};
  if (!outcomes) return outcomes.error();
  for (std::size_t i = 0; i < some.size(); ++i) {
    if ((*outcomes)[i].done) finish(*some[i], (*outcomes)[i].version, link.server_number());
  }
  if (outcomes->front().now_at != 0)
    known_.clock_said(outcomes->front().now_at, sent, link.server_number());
  return done{};
}

status row_store::change_locked(row_link& link, change& one, boot_time deadline) {
  auto now = link.lock(std::span(&one.step.name, 1), deadline);
  if (!now) return std::move(now.error());
  const server_time read = time_of(*now);
  found(one, std::move(now->front()), link.server_number());
  if (one.over) return link.unlock({}, 0, deadline);
  one.sent = true;
  const rewrite wanted{one.step.name, *one.next};
  auto gone = link.unlock(std::span(&wanted, 1), read.at(deadline), deadline);
  one.sent = !gone && !was_refused(link, gone.error());
  if (!gone) return gone;
  finish(one, one.before.version + 1, link.server_number());
  return done{};
}

void row_store::finish(change& one, std::int64_t version, std::int64_t server) {
  known_.learn(one.step.name, one.before.version,
               {true, version, *one.next, 0, one.before.fence_floor}, server);
  if (is_free(*one.next)) note_free(one.step.name);
  one.end(done{});
}

// ---- the rest

result<std::vector<state_store::entry>> row_store::entries() {
  return with_link([](row_link& link, boot_time deadline) { return link.entries(deadline); });
}

result<std::vector<state_store::entry>> row_store::walk(std::string_view behind, std::size_t most) {
  return with_link([&](row_link& link, boot_time deadline) {
    return link.entries_behind(behind, most, deadline);
  });
}

result<moment> row_store::time() {
  return with_link([](row_link& link, boot_time deadline) -> result<moment> {
    const std::string_view nobody[] = {""};
    const auto rows = link.read(nobody, deadline);
    if (!rows) return rows.error();
    return moment{rows->front().now_at, rows->front().now_at};
  });
}

void row_store::note_free(std::string_view name) {
  const std::lock_guard guard{free_mutex_};
  if (!free_.contains(name)) free_.emplace(name);
}

void row_store::sweep_if_many() {
  {
    const std::lock_guard guard{free_mutex_};
    if (free_.size() < free_rows_kept) return;
  }
  sweep(timeout_);
}

// Each removed row loses its last fence; the greatest of them remains as a floor for all names.
// Rows that cannot be removed only cost a little space.
void row_store::sweep(std::chrono::milliseconds patience) {
  std::set<std::string, std::less<>> some;
  {
    const std::lock_guard guard{free_mutex_};
    some.swap(free_);
  }
  const std::vector<std::string> names(some.begin(), some.end());
  (void)with_link([&](row_link& link, boot_time deadline) { return link.sweep(names, deadline); },
                  boot_clock::now() + patience);
}

row_store::~row_store() {
  try {
    if (!free_.empty()) sweep(patience_at_closing);
  } catch (const std::bad_alloc&) {
    // No memory: the rows stay for another session's sweep.
  }
}

}  // namespace holdfast::store::sql
