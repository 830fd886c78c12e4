#pragma once

#include <cstddef>
#include <holdfast/clock.hpp>
#include <memory>

#include "store/postgres/wire.hpp"

namespace holdfast::store::postgres {

/// A connection on its way, in steps that do not wait. libpq goes on to the next host of a list
/// after an error, and never after silence: so each host is the first one for a share of the time,
/// and the one that answered last begins.
class opening {
 public:
  opening(const address& to, boot_time until);

  /// True: it is open. Once its socket has the events that are wanted, or at next().
  result<bool> step(boot_time whole_by);
  int fd() const noexcept { return made_->fd(); }
  short wants() const noexcept { return made_->wants(); }
  boot_time next() const noexcept { return share_ends_; }
  std::unique_ptr<wire> take() noexcept { return std::move(made_); }

 private:
  void begin();

  const address& to_;
  const boot_time until_;
  const std::size_t begins_;  ///< with which host
  const std::size_t hosts_;
  std::size_t tried_ = 0;  ///< how many of them as the first one
  boot_time share_ends_{};
  std::unique_ptr<wire> made_;
};

/// Connects and looks at the server, in all of its steps. `limit` is what the deadline came from,
/// for the message.
result<std::unique_ptr<wire>> connect(const address& to, boot_time deadline,
                                      std::string_view limit = "connect_timeout");

}  // namespace holdfast::store::postgres
