#pragma once

#include <chrono>
#include <set>

#include "store/sql/known_rows.hpp"
#include "store/sql/link_pool.hpp"

namespace holdfast::store::sql {

/// Changes records over a pool of connections. A change costs one round trip if this session wrote
/// the row last, otherwise two (read, replace), and two more if another session gets in between.
/// Thread-safe.
class row_store {
 public:
  row_store(link_pool::connect make, std::size_t connections, std::chrono::milliseconds timeout,
            clock& on = real_clock())
      : pool_([this, make = std::move(make)](boot_time deadline) { return anew(make, deadline); },
              connections, on),
        timeout_(timeout) {}
  ~row_store();

  /// Adds an existing connection.
  void use(std::unique_ptr<row_link> link) {
    known_.forget(link->server_number());
    pool_.add(std::move(link));
  }

  /// Several steps together cost as many round trips as one.
  std::vector<status> transact(std::span<const state_store::step> steps);
  /// Changes all rows in one transaction, with the locks of all rows, taken in the order of the
  /// names: two round trips. Repeats a transaction that others have thwarted.
  status transact_together(std::span<const state_store::step> steps,
                           const state_store::judge& after);
  result<std::vector<state_store::entry>> entries();
  result<std::vector<state_store::entry>> walk(std::string_view behind, std::size_t most);
  result<moment> time();

  /// Runs another operation over one of the connections; repeats it over another connection if an
  /// idle one turns out to be dead.
  template <class Act>
  auto with_link(Act act) {
    return with_link(act, boot_clock::now() + timeout_);
  }

 private:
  struct change;
  struct waiting_changes;
  struct unanswered;
  using changes = std::vector<change*>;

  template <class Act>
  auto with_link(Act act, boot_time deadline);
  /// Whether another connection may do better: this one broke. A connection that was just made
  /// leads to the same server as a new one would.
  static bool may_do_better(const link_pool::loan& link, const failure& why) noexcept {
    return !link->usable() && (link.used() || why.code != errc::read_only);
  }
  /// Makes a connection, and forgets the known rows: it may lead to a server where they are
  /// different.
  result<std::unique_ptr<row_link>> anew(const link_pool::connect& make, boot_time deadline) {
    auto made = make(deadline);
    if (made) known_.forget((*made)->server_number());
    return made;
  }
  static failure took_too_long();
  static failure not_busy(failure why);
  /// The failure when a broken connection could not be replaced: it includes what broke the first
  /// one.
  static failure told_after(failure why, const std::optional<failure>& first);
  result<std::optional<link_pool::loan>> borrow(changes& open, boot_time deadline);
  bool guess(change& one, std::int64_t server);
  void take_others(link_pool::taken& others, changes& into, std::int64_t server);
  void run(changes open);
  status settle(row_link& link, changes& open, boot_time deadline);
  status replace_guessed(row_link& link, const changes& open, boot_time deadline);
  status replace_read(row_link& link, const changes& open, boot_time deadline);
  status replace(row_link& link, std::span<change* const> all, boot_time deadline,
                 const server_time& read);
  status replace_some(row_link& link, std::span<change* const> some, boot_time deadline,
                      const server_time& read);
  status change_locked(row_link& link, change& one, boot_time deadline);
  status change_together(row_link& link, std::span<const state_store::step> steps,
                         const state_store::judge& after, unanswered& commit, boot_time deadline);
  status try_together(std::span<const state_store::step> steps, const state_store::judge& after);
  void found(change& one, row now, std::int64_t server);
  void finish(change& one, std::int64_t version, std::int64_t server);
  void note_free(std::string_view name);
  void sweep_if_many();
  void sweep(std::chrono::milliseconds patience);

  link_pool pool_;
  const std::chrono::milliseconds timeout_;
  known_rows known_;
  std::mutex free_mutex_;
  std::set<std::string, std::less<>> free_;
};

template <class Act>
auto row_store::with_link(Act act, boot_time deadline) {
  using outcome = decltype(act(std::declval<row_link&>(), deadline));
  auto link = pool_.borrow(deadline);
  while (link) {
    outcome got = act(**link, deadline);
    const bool is_dead = !got && may_do_better(*link, got.error());
    if (is_dead) pool_.drop_idle();
    if (!is_dead || !link->used() || boot_clock::now() >= deadline) return got;
    link = pool_.replace(std::move(*link), deadline);
  }
  return outcome(std::move(link.error()));
}

}  // namespace holdfast::store::sql
