#pragma once

#include "store/sql/lock_links.hpp"
#include "store/sql/seats.hpp"

namespace holdfast::store::sql {

/// Who of a session holds or waits, and over which of its connections: takes, waits and gives up at
/// the server. For one thread at a time.
class seating {
 public:
  seating(lock_links links, clock& on) : links_(std::move(links)), clock_(on) {}

  seats& all() noexcept { return all_; }
  seats::iterator find(std::string_view name, const owner_id& owner) {
    return sql::find(all_, name, owner);
  }
  seat& add(seat s) { return all_.emplace_back(std::move(s)); }
  lock_link& link_of(const seat& s) const { return s.own ? *s.own : links_.home(); }

  /// The connection of all, made again if it broke.
  result<lock_link*> home();

  /// Takes it, if it is free. The seat need not be one of all().
  result<bool> try_now(seat& s);
  /// Waits at the server, if there is a connection for it.
  void begin_wait(seat& s);
  /// If its wait is over: it holds, or has no place any more.
  void hear_of(seat& s);
  /// Asks whether its connection lives: it has been heard of now, or holds nothing any more
  /// (forget_what_broke). One round trip.
  void ask_after(seat& s);
  /// To what another weight needs. False: others are in.
  result<bool> change(seat& s, std::uint32_t weight);
  /// True if it held or waited. Where the server cannot be got to free it, the connection is
  /// closed, and what else it held is lost: nothing stays locked that nobody holds.
  result<bool> give_up(seats::iterator s);
  /// With its connection the server takes what it held. To be called after each command.
  void forget_what_broke();

 private:
  bool home_is_free_for(const seat& wants) const;
  std::unique_ptr<lock_link> take_spare();
  void end_wait(lock_link& of);
  result<bool> unlock(const seat& s);

  lock_links links_;
  clock& clock_;
  seats all_;
};

}  // namespace holdfast::store::sql
