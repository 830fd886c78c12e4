#pragma once

#include "store/sql/lock_links.hpp"
#include "store/sql/session_lock_entry.hpp"

namespace holdfast::store::sql {

/// The holders and waiters of a session, and the connection of each: acquires, waits and gives up
/// at the server. For one thread at a time.
class session_lock_table {
 public:
  session_lock_table(lock_links links, clock& on) : links_(std::move(links)), clock_(on) {}

  session_lock_entries& all() noexcept { return all_; }
  /// Null if there is none.
  session_lock_entry* find(std::string_view name, const owner_id& owner) noexcept {
    for (session_lock_entry& s : all_) {
      if (s.owner == owner && s.name == name) return &s;
    }
    return nullptr;
  }
  /// Takes a list of one entry: after the server has granted a lock, no memory may be needed any
  /// more.
  session_lock_entry& add(session_lock_entries one) noexcept {
    all_.splice(all_.end(), one);
    return all_.back();
  }
  lock_link& link_of(const session_lock_entry& s) const { return s.own ? *s.own : links_.home(); }

  /// Runs an operation over the home connection, and reconnects if that broke. The server closes
  /// connections that were idle for long, which shows only now: then the operation runs once more,
  /// over a new connection.
  template <class Act>
  auto over_home(Act act) {
    using outcome = decltype(act(std::declval<lock_link&>()));
    for (bool again = false;; again = true) {
      const auto home = this->home();
      if (!home) return outcome(home.error());
      outcome got = act(**home);
      if (got || again || links_.home().usable()) return got;
    }
  }

  /// Acquires the lock, if it is free. The entry need not be in all().
  result<bool> try_now(session_lock_entry& s);
  /// Waits at the server, if there is a connection for it.
  void begin_wait(session_lock_entry& s);
  /// If the entry's wait is over: the entry holds the lock now, or has lost its queue entry.
  void hear_of(session_lock_entry& s);
  /// Checks whether the entry's connection lives: updates `heard`, or the entry holds nothing any
  /// more (forget_what_broke). One round trip.
  void ask_after(session_lock_entry& s);
  /// Changes to the mode that another weight needs. False: there are other holders.
  result<bool> change(session_lock_entry& s, std::uint32_t weight);
  /// True if the entry held or waited. If the server cannot release the lock, the connection is
  /// closed, and its other locks are lost: no lock stays taken without a holder.
  result<bool> give_up(session_lock_entry& s);
  /// Drops the entries of broken connections: the server has released their locks. To be called
  /// after each command.
  void forget_what_broke();

 private:
  result<lock_link*> home();
  bool home_is_free_for(const session_lock_entry& wants) const;
  std::unique_ptr<lock_link> take_spare();
  void end_wait(lock_link& of);
  status interrupt(lock_link& one);
  result<bool> unlock(const session_lock_entry& s);

  lock_links links_;
  clock& clock_;
  session_lock_entries all_;
};

}  // namespace holdfast::store::sql
