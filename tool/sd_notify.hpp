#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace holdfast::tool {

/// Reports a Type=notify unit's state to systemd: one datagram a message to $NOTIFY_SOCKET. Without
/// that variable nothing happens. Failures are ignored: they must not end the work.
class notifier {
 public:
  /// Reads NOTIFY_SOCKET and WATCHDOG_USEC.
  notifier();

  void ready(std::string_view status) const;
  void status(std::string_view text) const;
  void stopping() const;
  /// Call it only after a successful renewal, so that a hanging one gets the unit restarted.
  void alive() const;

  /// systemd's time-out for alive(); zero if there is none.
  std::chrono::microseconds watchdog() const noexcept { return watchdog_; }

 private:
  void send(const std::string& message) const;
  std::string socket_;
  std::chrono::microseconds watchdog_{0};
};

}  // namespace holdfast::tool
