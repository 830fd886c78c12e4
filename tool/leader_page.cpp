#include "tool/leader_page.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
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
constexpr std::size_t most_clients = 64;
constexpr std::chrono::seconds patience{2};

[[noreturn]] void refuse(const std::string& address, const std::string& why) {
  throw failure_exit(exit_code::config, "--http " + printable(address) + ": " + why);
}

using addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

/// What is before the port, without the brackets of IPv6.
std::string host_of(std::string_view address) {
  if (address.starts_with('[')) return std::string(address.substr(1, address.find(']') - 1));
  return std::string(address.substr(0, address.rfind(':')));
}

addresses resolve(const std::string& address) {
  const auto colon = address.rfind(':');
  if (colon == address.npos) refuse(address, "write :PORT, or ADDRESS:PORT");
  std::string host = host_of(address);
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
  unique_fd fd(::socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
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

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool alike(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

bool is_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> ignored{};
  return ::inet_pton(AF_INET, host.c_str(), ignored.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), ignored.data()) == 1;
}

/// This machine's name, whole or up to the first dot.
bool is_own_name(std::string_view host) {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  const std::string_view whole = name.data();
  if (whole.empty()) return false;
  return alike(host, whole) || alike(host.substr(0, host.find('.')), whole) ||
         alike(host, whole.substr(0, whole.find('.')));
}

/// What the Host lines say; more than one is an attempt to be understood in two ways.
std::vector<std::string> hosts_in(std::string_view request) {
  std::vector<std::string> found;
  constexpr std::string_view key = "host:";
  for (auto at = request.find('\n'); at != request.npos; at = request.find('\n', at + 1)) {
    auto line = request.substr(at + 1, request.find('\n', at + 1) - at - 1);
    if (line.size() < key.size() || !alike(line.substr(0, key.size()), key)) continue;
    line.remove_prefix(key.size());
    constexpr std::string_view blanks = " \t\r";
    const auto from = std::min(line.find_first_not_of(blanks), line.size());
    found.emplace_back(line.substr(from, line.find_last_not_of(blanks) + 1 - from));
  }
  return found;
}

std::string with_head(std::string_view status, const std::string& body) {
  return "HTTP/1.1 " + std::string(status) +
         "\r\nContent-Type: application/json\r\nCache-Control: no-store\r\nConnection: close\r\n"
         "Content-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace

leader_page::leader_page(const std::string& address, session s, const std::string& name)
    : election_(std::move(s), name),
      host_(host_of(address)),
      listening_(listen_on(address)),
      port_(port_of(listening_.get())),
      thread_([this] { serve(); }) {}

leader_page::~leader_page() {
  over_.ring();
  thread_.join();
}

void leader_page::serve() {
  for (;;) {
    std::vector<pollfd> wait{{over_.fd(), POLLIN, 0}, {listening_.get(), POLLIN, 0}};
    boot_time until = forever;
    for (const client& c : clients_) {
      wait.push_back({c.fd.get(), static_cast<short>(c.answer.empty() ? POLLIN : POLLOUT), 0});
      until = std::min(until, c.until);
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - boot_clock::now());
    const auto ms = std::max<std::int64_t>(left.count(), 0);
    ::poll(wait.data(), wait.size(), until == forever ? -1 : static_cast<int>(ms));
    if (wait[0].revents != 0) return;
    for (std::size_t i = clients_.size(); i > 0; --i) {
      client& c = clients_[i - 1];
      const bool goes_on = wait[i + 1].revents == 0 || attend(c);
      if (goes_on && boot_clock::now() < c.until) continue;
      clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(i - 1));
    }
    if (wait[1].revents != 0) welcome();
  }
}

void leader_page::welcome() {
  unique_fd fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd) {
    // The oldest is the slowest.
    if (clients_.size() == most_clients) clients_.erase(clients_.begin());
    clients_.push_back({std::move(fd), boot_clock::now() + patience});
    return;
  }
  // Without a file for it, poll would say at once that it still waits.
  if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return;
  pollfd end{over_.fd(), POLLIN, 0};
  ::poll(&end, 1, 100);
}

bool leader_page::attend(client& c) {
  if (c.answer.empty()) return hear(c);
  const ssize_t n = ::send(c.fd.get(), c.answer.data(), c.answer.size(), MSG_NOSIGNAL);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  c.answer.erase(0, static_cast<std::size_t>(n));
  return !c.answer.empty();
}

bool leader_page::hear(client& c) {
  std::array<char, 1024> buffer{};
  const ssize_t n = ::recv(c.fd.get(), buffer.data(), buffer.size(), 0);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  c.heard.append(buffer.data(), static_cast<std::size_t>(n));
  if (c.heard.find("\r\n\r\n") != c.heard.npos) {
    c.answer = response(c.heard);
    return true;
  }
  return n > 0 && c.heard.size() < longest_request;
}

bool leader_page::is_meant(const std::string& request) const {
  const auto hosts = hosts_in(request.substr(0, request.find("\r\n\r\n")));
  if (hosts.empty()) return true;  // no browser: those of HTTP/1.1 send one
  if (hosts.size() > 1) return false;
  const std::string_view whole = hosts.front();
  const auto colon = whole.rfind(':');
  const bool port = !whole.starts_with('[') && colon != whole.npos;
  const std::string host = port || whole.starts_with('[') ? host_of(whole) : std::string(whole);
  return is_address(host) || alike(host, "localhost") || alike(host, host_) || is_own_name(host);
}

std::string leader_page::response(const std::string& request) {
  if (!is_meant(request))
    return with_head(
        "421 Misdirected Request",
        "{\"schema\":1,\"error\":\"ask under an address, localhost, the machine's name "
        "or the name in --http\"}\n");
  std::optional<leader> leads;
  try {
    leads = election_.current();
  } catch (const error&) {
    // Whoever asks gets 503, as if nobody led: it cannot be known.
  }
  return with_head(leads ? "200 OK" : "503 Service Unavailable",
                   leader_json(election_.name(), leads));
}

}  // namespace holdfast::tool
