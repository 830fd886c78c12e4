#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/store/command.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::store {

/// How notifications reach one session. One thread at a time is in receive(); everything else may
/// be called from any thread.
class inbox {
 public:
  virtual ~inbox() = default;

  /// This session's address in the store. Constant.
  virtual const std::string& peer() const noexcept = 0;

  /// Blocks until there is a notification, or `until` has come, or interrupt() was called (in the
  /// last two cases the result is empty). A notification that has already arrived is returned even
  /// after `until`.
  virtual std::optional<notification> receive(boot_time until) = 0;

  /// Makes the receive() in progress return, or the next one if there is none.
  virtual void interrupt() noexcept = 0;

  /// How many times notifications may have been lost: grows when the connection to the store was
  /// interrupted. Empty if the inbox cannot notice a loss.
  virtual std::optional<std::uint64_t> gaps() const noexcept { return std::nullopt; }

  /// From now on receive() yields one `departed` notification when the session `peer` has died.
  /// Stores that cannot detect it do nothing. `peer` may be watched several times, and is unwatched
  /// as often.
  virtual void watch(std::string_view peer) { (void)peer; }
  virtual void unwatch(std::string_view peer) noexcept { (void)peer; }
};

}  // namespace holdfast::store
