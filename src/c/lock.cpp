#include "c/lock.hpp"

#include <deque>
#include <holdfast/fair_mutex.hpp>

#include "c/session.hpp"

namespace holdfast::c_abi {

void lock_handle::require(const request& r) const {
  if (r.shared) refuse(errc::unsupported, "this lock has no readers: only a shared mutex has them");
  if (r.permits != 0)
    refuse(errc::unsupported, "this lock has no permits: only a semaphore has them");
}

multi_member lock_handle::member(const request& /*r*/) {
  refuse(errc::invalid_argument, "a member is a mutex, a shared mutex or a semaphore");
}

namespace {

template <class Found>
std::unique_ptr<held> kept(std::optional<Found> found) {
  if (!found) return nullptr;
  return as_held(std::move(*found));
}

template <class Found>
void begin_lease(pending<Found> what, const waiting& w) {
  begin(std::move(what), w, [](Found&& found, event_of& e) {
    e.granted = std::make_shared<lease_handle>(as_held(std::move(found)));
  });
}

class mutex_lock final : public lock_handle {
 public:
  mutex_lock(const session& s, std::shared_ptr<mutex> m)
      : session_(s.impl()), store_(s.url()), mutex_(std::move(m)) {}
  about what() const override { return {mutex_->name(), store_}; }
  std::unique_ptr<held> acquire(const request&, const waiting& w) override {
    auto found = mutex_->try_acquire_for(w.limit, w.stop);
    if (!found) return nullptr;
    return as_held(std::move(*found), true);
  }
  void begin_acquire(const request&, const waiting& w) override {
    // A pending wait does not keep a session alive; a granted lease does.
    begin(async_acquire(*mutex_, w.limit, w.stop), w,
          [kept_by_it = std::weak_ptr<const void>(session_)](lease&& found, event_of& e) {
            e.granted =
                std::make_shared<lease_handle>(as_held(std::move(found), true), kept_by_it.lock());
          });
  }
  multi_member member(const request&) override { return *mutex_; }
  std::shared_ptr<const void> session_of_leases() const override { return session_; }

 private:
  const std::shared_ptr<const void> session_;
  const std::string store_;
  const std::shared_ptr<mutex> mutex_;  // shared_ptr, so that a fair_mutex is destroyed as one
};

}  // namespace

class shared_lock final : public named<shared_mutex, lock_handle> {
 public:
  using named::named;
  void require(const request& r) const override {
    if (r.permits != 0) lock_handle::require(r);
  }
  std::unique_ptr<held> acquire(const request& r, const waiting& w) override {
    return kept(r.shared ? itself.try_acquire_shared_for(w.limit, w.stop)
                         : itself.try_acquire_for(w.limit, w.stop));
  }
  void begin_acquire(const request& r, const waiting& w) override {
    begin_lease(r.shared ? async_acquire_shared(itself, w.limit, w.stop)
                         : async_acquire(itself, w.limit, w.stop),
                w);
  }
  multi_member member(const request& r) override {
    return r.shared ? shared(itself) : multi_member(itself);
  }
};

class semaphore_lock final : public named<semaphore, lock_handle> {
 public:
  using named::named;
  void require(const request& r) const override {
    if (r.shared) lock_handle::require(r);
  }
  std::unique_ptr<held> acquire(const request& r, const waiting& w) override {
    return kept(itself.try_acquire_for(w.limit, weight(r), w.stop));
  }
  void begin_acquire(const request& r, const waiting& w) override {
    begin_lease(async_acquire(itself, weight(r), w.limit, w.stop), w);
  }
  multi_member member(const request& r) override { return permits(itself, weight(r)); }

 private:
  static std::uint32_t weight(const request& r) { return r.permits == 0 ? 1 : r.permits; }
};

class election_lock final : public named<election, lock_handle> {
 public:
  using named::named;
  std::unique_ptr<held> acquire(const request&, const waiting& w) override {
    return kept(itself.campaign_for(w.limit, w.stop));
  }
  void begin_acquire(const request&, const waiting& w) override {
    begin_lease(async_campaign(itself, w.limit, w.stop), w);
  }
};

class leaders_handle final : public handle {
 public:
  leaders_handle(leaders l, about its) : what(std::move(its)), leaders_(std::move(l)) {}
  /// Ends the pending wait, which keeps this object alive, and with it the session.
  void on_close() noexcept override { waits_.end(); }
  const ends_its_waits& its_waits() const noexcept { return waits_; }
  const about what;

  /// Only one call at a time may ask.
  leaders& begin_to_ask() {
    const std::lock_guard guard{mutex_};
    if (asked_) refuse(errc::invalid_argument, "leaders: another call is in progress");
    asked_ = true;
    return leaders_;
  }
  void end() noexcept {
    const std::lock_guard guard{mutex_};
    asked_ = false;
  }
  void end(leader now) noexcept {
    const std::lock_guard guard{mutex_};
    asked_ = false;
    found_ = std::move(now);
  }
  leader found() const {
    const std::lock_guard guard{mutex_};
    return found_;
  }

 private:
  ends_its_waits waits_;
  mutable std::mutex mutex_;
  bool asked_ = false;
  leaders leaders_;
  leader found_{};  ///< of the last call that found one
};

namespace {

/// A lock on several names, or on a majority of several stores.
template <class Lock>
class joint_lock final : public lock_handle {
 public:
  template <class... Args>
  explicit joint_lock(Args&&... args) : all_(std::forward<Args>(args)...) {}
  std::unique_ptr<held> acquire(const request&, const waiting& w) override {
    return kept(all_.try_acquire_for(w.limit, {}, w.stop));
  }
  void begin_acquire(const request&, const waiting& given) override {
    waiting w = given;
    waits_.also_end(w);
    begin_lease(async_acquire(all_, w.limit, w.stop), w);
  }
  void on_close() noexcept override { waits_.end(); }

 private:
  Lock all_;
  ends_its_waits waits_;
};

lock_options options_of(const holdfast_lock_options* options) {
  const auto given = read(options, "options");
  lock_options o;
  o.renew = given.no_renewal == 0;
  o.unconfirmed_release = given.unconfirmed_release != 0;
  o.lease = std::chrono::milliseconds(given.lease_ms);
  if (given.max_hold_ms != 0) o.max_hold = std::chrono::milliseconds(given.max_hold_ms);
  if (given.local_time_us != 0) {
    o.local_time = std::chrono::microseconds(std::max<int64_t>(given.local_time_us, 0));
  }
  o.linger = std::chrono::microseconds(given.linger_us);
  if (given.max_waiters != 0) o.max_waiters = given.max_waiters;
  o.reason = text_or_nothing(given.reason);
  return o;
}

preference preference_of(int wanted) {
  switch (wanted) {
    case HOLDFAST_FIFO:
      return preference::fifo;
    case HOLDFAST_READERS_FIRST:
      return preference::reader;
    case HOLDFAST_WRITERS_FIRST:
      return preference::writer;
    default:
      refuse(errc::invalid_argument,
             "preference is not fifo, readers or writers (in C a holdfast_preference)");
  }
}

void put_leader(holdfast_leader& there, const leader& found) {
  there.term = found.term;
  there.pid = found.pid;
  there.after_gap = found.after_gap ? 1 : 0;
  put_text(there.note, found.note);
  put_text(there.host, found.host);
  put_text(there.program, found.program);
}

/// If a leader is found, the caller has to call end().
std::optional<leader> next_now(leaders_handle& from, const waiting& w) {
  auto& stream = from.begin_to_ask();
  try {
    auto found = stream.next_for(w.limit, w.stop);
    if (!found) from.end();
    return found;
  } catch (...) {
    from.end();
    throw;
  }
}

void begin_next(const std::shared_ptr<leaders_handle>& from, waiting w) {
  auto& stream = from->begin_to_ask();
  try {
    from->its_waits().also_end(w);
    begin(
        async_next(stream, w.limit, w.stop), w,
        [from](leader&& found, event_of& e) {
          e.number = found.term;
          from->end(std::move(found));
        },
        [from] { from->end(); });
  } catch (...) {
    from->end();
    throw;
  }
}

template <class Mutex>
int open_mutex(holdfast_session* session, const char* name, const holdfast_lock_options* options,
               holdfast_lock** lock, holdfast_error* why) {
  return guarded(why, [&] {
    auto& there = out(lock, "lock");
    const session_visit visited(session);
    const auto& at = visited.itself();
    give(&there, std::make_shared<mutex_lock>(
                     at, std::make_shared<Mutex>(at, text_of(name, "name"), options_of(options))));
  });
}

int acquire_as(holdfast_lock* lock, const request& r, const holdfast_wait* how,
               holdfast_lease** lease, holdfast_error* why) {
  return guarded(why, [&]() -> status {
    const auto w = read(how);
    if (w.to) {
      const visit here(lock);
      auto& from = here.as<lock_handle>("lock");
      from.require(r);
      from.begin_acquire(r, w);
      return done{};
    }
    auto& there = out(lease, "lease");
    const auto from = get<lock_handle>(lock, "lock", [&](const lock_handle& l) { l.require(r); });
    auto found = from->acquire(r, w);
    if (!found) return w.in_vain("acquire", from->what());
    give(&there, std::make_shared<lease_handle>(std::move(found), from->session_of_leases()));
    return done{};
  });
}

}  // namespace

}  // namespace holdfast::c_abi

using namespace holdfast::c_abi;
using holdfast::errc;

extern "C" {

int holdfast_mutex(holdfast_session* session, const char* name,
                   const holdfast_lock_options* options, holdfast_lock** lock,
                   holdfast_error* why) {
  return open_mutex<holdfast::mutex>(session, name, options, lock, why);
}

int holdfast_fair_mutex(holdfast_session* session, const char* name,
                        const holdfast_lock_options* options, holdfast_lock** lock,
                        holdfast_error* why) {
  return open_mutex<holdfast::fair_mutex>(session, name, options, lock, why);
}

int holdfast_shared_mutex(holdfast_session* session, const char* name, int preference,
                          const holdfast_lock_options* options, holdfast_lock** lock,
                          holdfast_error* why) {
  return guarded(why, [&] {
    auto& there = out(lock, "lock");
    give(&there,
         std::make_shared<shared_lock>(
             session_visit(session).itself(), text_of(name, "name"),
             holdfast::shared_mutex_options{options_of(options), preference_of(preference)}));
  });
}

int holdfast_semaphore(holdfast_session* session, const char* name, uint32_t capacity,
                       const holdfast_lock_options* options, holdfast_lock** lock,
                       holdfast_error* why) {
  return guarded(why, [&] {
    auto& there = out(lock, "lock");
    give(&there,
         std::make_shared<semaphore_lock>(session_visit(session).itself(), text_of(name, "name"),
                                          capacity, options_of(options)));
  });
}

int holdfast_semaphore_available(holdfast_lock* semaphore, uint32_t* permits, holdfast_error* why) {
  return guarded(why, [&] {
    auto& there = out(permits, "permits");
    there = get<semaphore_lock>(semaphore, "semaphore")->itself.available();
  });
}

int holdfast_election(holdfast_session* session, const char* name,
                      const holdfast_election_options* options, holdfast_lock** lock,
                      holdfast_error* why) {
  return guarded(why, [&] {
    auto& there = out(lock, "lock");
    const auto given = read(options, "options");
    holdfast::election_options o;
    o.priority = given.priority;
    o.lease = std::chrono::milliseconds(given.lease_ms);
    o.note = text_or_nothing(given.note);
    give(&there, std::make_shared<election_lock>(session_visit(session).itself(),
                                                 text_of(name, "name"), o));
  });
}

int holdfast_election_leader(holdfast_lock* election, holdfast_leader* leader,
                             holdfast_error* why) {
  return guarded(why, [&] {
    out_struct there(leader, "leader");
    if (const auto found = get<election_lock>(election, "election")->itself.current()) {
      put_leader(*there, *found);
    }
  });
}

int holdfast_election_observe(holdfast_lock* election, holdfast_leaders** leaders,
                              holdfast_error* why) {
  return guarded(why, [&] {
    auto& there = out(leaders, "leaders");
    const visit here(election);
    auto& of = here.as<election_lock>("election");
    give(&there, std::make_shared<leaders_handle>(of.itself.observe(), of.what()));
  });
}

int holdfast_leaders_next(holdfast_leaders* leaders, const holdfast_wait* how,
                          holdfast_leader* leader, holdfast_error* why) {
  return guarded(why, [&]() -> holdfast::status {
    const auto w = read(how);
    const visit here(w.to ? leaders : nullptr);
    const auto from = get<leaders_handle>(leaders, "leaders");
    if (w.to) {
      begin_next(from, w);
      return holdfast::done{};
    }
    out_struct there(leader, "leader");
    auto found = next_now(*from, w);
    if (!found) return w.in_vain("leaders_next", from->what);
    put_leader(*there, *found);
    from->end(std::move(*found));
    return holdfast::done{};
  });
}

int holdfast_leaders_found(holdfast_leaders* leaders, holdfast_leader* leader,
                           holdfast_error* why) {
  return guarded(why, [&] {
    out_struct there(leader, "leader");
    put_leader(*there, get<leaders_handle>(leaders, "leaders")->found());
  });
}

int holdfast_multi_lock(const holdfast_member* members, uint32_t count, holdfast_lock** lock,
                        holdfast_error* why) {
  return guarded(why, [&] {
    auto& there = out(lock, "lock");
    require_array(members, count, "members");
    std::deque<visit> visited;
    std::vector<holdfast::multi_member> all;
    all.reserve(count);
    for (uint32_t i = 0; i < count; ++i) {
      const request r{members[i].shared != 0, members[i].permits};
      auto& from = visited.emplace_back(members[i].lock).as<lock_handle>("member");
      from.require(r);
      all.push_back(from.member(r));
    }
    give(&there, std::make_shared<joint_lock<holdfast::multi_lock>>(std::move(all)));
  });
}

int holdfast_redlock(holdfast_session* const* nodes, uint32_t count, const char* name,
                     const holdfast_redlock_options* options, holdfast_lock** lock,
                     holdfast_error* why) {
  return guarded(why, [&] {
    auto& there = out(lock, "lock");
    require_array(nodes, count, "nodes");
    std::deque<session_visit> visited;
    std::vector<holdfast::session> all;
    all.reserve(count);
    for (uint32_t i = 0; i < count; ++i) all.push_back(visited.emplace_back(nodes[i]).itself());
    const auto given = read(options, "options");
    holdfast::redlock_options o;
    o.lease = std::chrono::milliseconds(given.lease_ms);
    if (given.node_timeout_ms != 0) {
      o.node_timeout = std::chrono::milliseconds(given.node_timeout_ms);
    }
    o.trust_after = std::chrono::milliseconds(given.trust_after_ms);
    o.reason = text_or_nothing(given.reason);
    give(&there, std::make_shared<joint_lock<holdfast::redlock>>(
                     std::move(all), text_of(name, "name"), std::move(o)));
  });
}

int holdfast_acquire(holdfast_lock* lock, const holdfast_wait* how, holdfast_lease** lease,
                     holdfast_error* why) {
  return acquire_as(lock, {}, how, lease, why);
}

int holdfast_acquire_shared(holdfast_lock* lock, const holdfast_wait* how, holdfast_lease** lease,
                            holdfast_error* why) {
  return acquire_as(lock, {.shared = true}, how, lease, why);
}

int holdfast_acquire_permits(holdfast_lock* lock, uint32_t permits, const holdfast_wait* how,
                             holdfast_lease** lease, holdfast_error* why) {
  if (permits == 0) {
    return guarded(why, [] { refuse(errc::invalid_argument, "permits: at least one"); });
  }
  return acquire_as(lock, {.permits = permits}, how, lease, why);
}

int holdfast_downgrade(holdfast_lock* lock, holdfast_lease* lease, holdfast_error* why) {
  return guarded(why, [&] {
    const auto of = get<shared_lock>(lock, "lock");
    lease_of(lease)->with([&](held& l) { of->itself.downgrade(as_single(l).itself()); });
  });
}

int holdfast_upgrade(holdfast_lock* lock, holdfast_lease* lease, holdfast_error* why) {
  return guarded(why, [&]() -> holdfast::status {
    const auto of = get<shared_lock>(lock, "lock");
    const bool alone = lease_of(lease)->with(
        [&](held& l) { return of->itself.try_upgrade(as_single(l).itself()); });
    if (alone) return holdfast::done{};
    auto [name, at] = of->what();
    return holdfast::failure{errc::busy, "there are other readers", false, "upgrade", name, at};
  });
}

}  // extern "C"
