#include "tool/sd_notify.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "tool/fd.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

template <class T>
T number_in(std::string_view text) {
  T value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::chrono::microseconds awaited() {
  const auto pid = variable("WATCHDOG_PID");
  if (!pid.empty() && number_in<pid_t>(pid) != ::getpid()) return {};
  return std::chrono::microseconds{number_in<std::int64_t>(variable("WATCHDOG_USEC"))};
}

}  // namespace

notifier::notifier() : socket_(variable("NOTIFY_SOCKET")) {
  if (!socket_.empty()) watchdog_ = awaited();
}

void notifier::ready(std::string_view status) const {
  send("READY=1\nSTATUS=" + printable(status));
}
void notifier::status(std::string_view text) const { send("STATUS=" + printable(text)); }
void notifier::stopping() const { send("STOPPING=1"); }
void notifier::alive() const {
  if (watchdog_.count() > 0) send("WATCHDOG=1");
}

void notifier::send(const std::string& message) const {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (socket_.empty() || socket_.size() >= sizeof to.sun_path) return;
  std::copy(socket_.begin(), socket_.end(), to.sun_path);
  // @ stands for the zero byte of the abstract namespace.
  if (to.sun_path[0] == '@') to.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  const unique_fd socket{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  ::sendto(socket.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
           reinterpret_cast<const sockaddr*>(&to), size);
}

}  // namespace holdfast::tool
