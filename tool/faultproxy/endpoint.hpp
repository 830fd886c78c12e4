#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::faultproxy {

/// One end of a TCP connection: `host:port`, `[::1]:port`; or a port alone, on this machine.
struct endpoint {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
};

/// Throws std::invalid_argument with a valid form.
endpoint parse_endpoint(std::string_view text);
std::string to_string(const endpoint& e);

/// The result of one look-up.
struct address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
};

/// Throws std::runtime_error if the name is unknown.
address look_up(const endpoint& e);

/// Returns a socket that listens there. Throws std::system_error, naming the address.
int listen_on(const endpoint& e);
std::uint16_t port_of(int listening);

}  // namespace holdfast::faultproxy
