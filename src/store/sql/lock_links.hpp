#pragma once

#include "store/sql/lock_link.hpp"

namespace holdfast::store::sql {

/// The connections of a session that holds a server's own locks: one, home, takes free locks for
/// all threads; each of the others is for one waiter. For one thread at a time.
class lock_links {
 public:
  lock_links(std::unique_ptr<lock_link> first, connect_lock_link connect, std::size_t most,
             clock& on)
      : connect_(std::move(connect)), most_(most), clock_(on), home_(std::move(first)) {}

  lock_link& home() const noexcept { return *home_; }
  /// Replaces a broken home connection.
  status replace_home();

  /// A connection for a waiter, when waiters have `taken` already. Null if the maximum is reached,
  /// or if the server accepts no more, or accepted no more less than a second ago: all waiters ask,
  /// and the other threads wait for each answer.
  std::unique_ptr<lock_link> take_spare(std::size_t taken);
  /// Keeps it for the next waiter, if it still works.
  void give_back(std::unique_ptr<lock_link> one);
  void forget_what_broke();

 private:
  const connect_lock_link connect_;
  const std::size_t most_;
  clock& clock_;
  boot_time none_until_{};
  std::unique_ptr<lock_link> home_;
  std::vector<std::unique_ptr<lock_link>> spare_;
};

}  // namespace holdfast::store::sql
