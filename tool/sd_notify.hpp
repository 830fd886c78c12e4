#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace holdfast::tool {

/// Tells systemd how a Type=notify unit is doing: one datagram a message to $NOTIFY_SOCKET.
/// Without that variable nothing happens. Failures are ignored: they must not end the work.
class notifier {
 public:
  /// Reads NOTIFY_SOCKET and WATCHDOG_USEC.
  notifier();

  void ready(std::string_view status) const;
  void status(std::string_view text) const;
  void stopping() const;
  /// Only after a renewal that worked, so that a wedged one gets the unit restarted.
  void alive() const;

  /// How often alive() is awaited; zero if nobody waits.
  std::chrono::microseconds watchdog() const noexcept { return watchdog_; }

 private:
  void send(const std::string& message) const;
  std::string socket_;
  std::chrono::microseconds watchdog_{0};
};

}  // namespace holdfast::tool
