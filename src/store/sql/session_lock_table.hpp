#pragma once

#include "store/sql/lock_links.hpp"
#include "store/sql/session_lock_entry.hpp"

namespace holdfast::store::sql {

/// The holders and waiters of a session, and the connection of each: takes, waits and gives up at
/// the server. For one thread at a time.
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
  /// A list of one: what is had at the server already must need no memory any more.
  session_lock_entry& add(session_lock_entries one) noexcept {
    all_.splice(all_.end(), one);
    return all_.back();
  }
  lock_link& link_of(const session_lock_entry& s) const { return s.own ? *s.own : links_.home(); }

  /// Something over the connection of all, which is made again if it broke. The server ends
  /// connections that were not used for long, and that shows only now: then it is done once more,
  /// over a new one.
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

  /// Takes it, if it is free. The entry need not be one of all().
  result<bool> try_now(session_lock_entry& s);
  /// Waits at the server, if there is a connection for it.
  void begin_wait(session_lock_entry& s);
  /// If its wait is over: it holds, or has no place any more.
  void hear_of(session_lock_entry& s);
  /// Asks whether its connection lives: it has been heard of now, or holds nothing any more
  /// (forget_what_broke). One round trip.
  void ask_after(session_lock_entry& s);
  /// To what another weight needs. False: others are in.
  result<bool> change(session_lock_entry& s, std::uint32_t weight);
  /// True if it held or waited. Where the server cannot be got to free it, the connection is
  /// closed, and what else it held is lost: nothing stays locked that nobody holds.
  result<bool> give_up(session_lock_entry& s);
  /// With its connection the server takes what it held. To be called after each command.
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
