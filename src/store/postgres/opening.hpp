#pragma once

#include <cstddef>
#include <holdfast/clock.hpp>
#include <memory>

#include "store/postgres/wire.hpp"

namespace holdfast::store::postgres {

/// A connection in the making, in steps that do not wait. After an error libpq goes on to the next
/// host of a list, but never after silence. So each host is the first one for a share of the time,
/// beginning with the host that answered last.
class opening {
 public:
  opening(const address& to, boot_time until);

  /// Returns true when the connection is open. To be called when the socket has the wanted events,
  /// or at next().
  result<bool> step(boot_time whole_by);
  int fd() const noexcept { return made_->fd(); }
  short wants() const noexcept { return made_->wants(); }
  boot_time next() const noexcept { return share_ends_; }
  std::unique_ptr<wire> take() noexcept { return std::move(made_); }

 private:
  void begin();

  const address& to_;
  const boot_time until_;
  const std::size_t begins_;  ///< the index of the first host
  const std::size_t hosts_;
  std::size_t tried_ = 0;  ///< how many hosts have been the first one
  boot_time share_ends_{};
  std::unique_ptr<wire> made_;
};

/// Connects and checks the server, by taking all steps. `limit` is the name of the deadline's
/// option, for the message.
result<std::unique_ptr<wire>> connect(const address& to, boot_time deadline,
                                      std::string_view limit = "connect_timeout");

}  // namespace holdfast::store::postgres
