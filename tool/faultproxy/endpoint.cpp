#include "tool/faultproxy/endpoint.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <system_error>

namespace holdfast::faultproxy {

namespace {

std::uint16_t parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [after, wrong] = std::from_chars(text.data(), end, port);
  if (wrong == std::errc{} && after == end) return port;
  throw std::invalid_argument("'" + std::string(text) +
                              "' is not a port; ports go from 1 to 65535");
}

}  // namespace

endpoint parse_endpoint(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == text.npos) return {.port = parse_port(text)};
  auto host = text.substr(0, colon);
  const bool in_brackets = host.starts_with('[') && host.ends_with(']');
  if (in_brackets) host = host.substr(1, host.size() - 2);
  if (host.empty() || (!in_brackets && host.find(':') != host.npos)) {
    throw std::invalid_argument("'" + std::string(text) +
                                "' is not an address; write host:port or [::1]:port");
  }
  return {std::string(host), parse_port(text.substr(colon + 1))};
}

std::string to_string(const endpoint& e) {
  const bool needs_brackets = e.host.find(':') != e.host.npos;
  return (needs_brackets ? "[" + e.host + "]" : e.host) + ":" + std::to_string(e.port);
}

address look_up(const endpoint& e) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int wrong = ::getaddrinfo(e.host.c_str(), std::to_string(e.port).c_str(), &hints, &found);
  if (wrong != 0) throw std::runtime_error("'" + e.host + "': " + ::gai_strerror(wrong));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
  address a;
  std::memcpy(&a.storage, found->ai_addr, found->ai_addrlen);
  a.size = found->ai_addrlen;
  return a;
}

int listen_on(const endpoint& e) {
  const address at = look_up(e);
  const int fd = ::socket(at.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd, at.get(), at.size) == 0 && ::listen(fd, 1024) == 0) return fd;
  const int error = errno;
  ::close(fd);
  throw std::system_error(error, std::generic_category(), "cannot listen on " + to_string(e));
}

std::uint16_t port_of(int listening) {
  sockaddr_storage at{};
  socklen_t size = sizeof at;
  ::getsockname(listening, reinterpret_cast<sockaddr*>(&at), &size);
  // The port is at the same offset in both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&at)->sin_port);
}

}  // namespace holdfast::faultproxy
