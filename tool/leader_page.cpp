#include "tool/leader_page.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "tool/exit_code.hpp"
#include "tool/failure.hpp"
#include "tool/json.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

constexpr std::size_t longest_request = 8192;
constexpr timeval patience{2, 0};

[[noreturn]] void refuse(const std::string& address, const std::string& why) {
  throw failure_exit(exit_code::config, "--http " + printable(address) + ": " + why);
}

using addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

addresses resolve(const std::string& address) {
  const auto colon = address.rfind(':');
  if (colon == address.npos) refuse(address, "write :PORT, or ADDRESS:PORT");
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty()) host = "127.0.0.1";
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int wrong = getaddrinfo(host.c_str(), address.substr(colon + 1).c_str(), &hints, &found);
  if (wrong != 0) refuse(address, gai_strerror(wrong));
  return {found, &freeaddrinfo};
}

unique_fd listen_on(const std::string& address) {
  const auto at = resolve(address);
  unique_fd fd(::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(fd.get(), at->ai_addr, at->ai_addrlen) != 0 || ::listen(fd.get(), 16) != 0) {
    refuse(address, std::strerror(errno));
  }
  return fd;
}

int port_of(int listening) {
  sockaddr_storage at{};
  socklen_t size = sizeof at;
  ::getsockname(listening, reinterpret_cast<sockaddr*>(&at), &size);
  std::array<char, 8> port{};
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&at), size, nullptr, 0, port.data(),
                static_cast<socklen_t>(port.size()), NI_NUMERICSERV);
  return std::atoi(port.data());
}

/// What was asked does not matter, only that the request is over. False if it never is.
bool hear_request(int client) {
  std::string heard;
  std::array<char, 1024> buffer{};
  while (heard.find("\r\n\r\n") == heard.npos && heard.size() < longest_request) {
    const ssize_t n = ::recv(client, buffer.data(), buffer.size(), 0);
    if (n <= 0) return false;
    heard.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

leader_page::leader_page(const std::string& address, session s, const std::string& name)
    : election_(std::move(s), name),
      listening_(listen_on(address)),
      port_(port_of(listening_.get())),
      thread_([this] { serve(); }) {}

leader_page::~leader_page() {
  over_.ring();
  thread_.join();
}

void leader_page::serve() {
  for (;;) {
    std::array<pollfd, 2> wait{{{over_.fd(), POLLIN, 0}, {listening_.get(), POLLIN, 0}}};
    ::poll(wait.data(), wait.size(), -1);
    if (wait[0].revents != 0) return;
    if (wait[1].revents == 0) continue;
    const unique_fd client(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (client) answer(client.get());
  }
}

void leader_page::answer(int client) {
  ::setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (!hear_request(client)) return;
  const std::string text = response();
  (void)::send(client, text.data(), text.size(), MSG_NOSIGNAL);
}

std::string leader_page::response() {
  std::optional<leader> leads;
  try {
    leads = election_.current();
  } catch (const error&) {
    // Whoever asks gets 503, as if nobody led: it cannot be known.
  }
  const std::string body = leader_json(election_.name(), leads);
  return std::string("HTTP/1.1 ") + (leads ? "200 OK" : "503 Service Unavailable") +
         "\r\nContent-Type: application/json\r\nCache-Control: no-store\r\nConnection: close\r\n"
         "Content-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace holdfast::tool
