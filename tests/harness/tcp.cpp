#include "harness/tcp.hpp"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>
#include <vector>

#include "tool/faultproxy/endpoint.hpp"

namespace harness {

fake_server::fake_server(talk answer)
    : answer_(std::move(answer)),
      listening_(holdfast::faultproxy::listen_on({})),
      port_(holdfast::faultproxy::port_of(listening_)),
      over_fd_(::eventfd(0, EFD_CLOEXEC)),
      thread_([this] { work(); }) {}

fake_server::~fake_server() {
  const std::uint64_t one = 1;
  (void)!::write(over_fd_, &one, sizeof one);
  thread_.join();
  for (const auto& [fd, heard] : clients_) ::close(fd);
  ::close(listening_);
  ::close(over_fd_);
}

void fake_server::work() {
  while (true) {
    std::vector<pollfd> all{{over_fd_, POLLIN, 0}, {listening_, POLLIN, 0}};
    for (const auto& [fd, heard] : clients_) all.push_back({fd, POLLIN, 0});
    ::poll(all.data(), all.size(), -1);
    if (all[0].revents != 0) return;
    for (const auto& p : all) {
      const auto client = clients_.find(p.fd);
      if (p.revents == 0 || client == clients_.end() || serve(p.fd, client->second)) continue;
      ::close(p.fd);
      clients_.erase(client);
    }
    if (all[1].revents != 0) accept_one();
  }
}

void fake_server::accept_one() {
  const int fd = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd >= 0) clients_.emplace(fd, std::string());
}

bool fake_server::serve(int fd, std::string& heard) const {
  std::array<char, 64 * 1024> buffer;
  const auto n = ::recv(fd, buffer.data(), buffer.size(), 0);
  if (n <= 0) return false;
  heard.append(buffer.data(), static_cast<std::size_t>(n));
  const auto says = answer_(heard);
  if (says) (void)!::send(fd, says->data(), says->size(), MSG_NOSIGNAL);
  return says.has_value();
}

tcp_client::tcp_client(int port, std::chrono::seconds patience)
    : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const auto to = holdfast::faultproxy::look_up({.port = static_cast<std::uint16_t>(port)});
  if (::connect(fd_, to.get(), to.size) != 0) throw std::runtime_error("nobody listens there");
  const timeval longest{patience.count(), 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
}

tcp_client::~tcp_client() { ::close(fd_); }

void tcp_client::say(const std::string& bytes) const {
  for (std::size_t at = 0; at < bytes.size();) {
    const auto n = ::send(fd_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (n < 0) return;  // the other side is gone: hear() reports that
    at += static_cast<std::size_t>(n);
  }
}

void tcp_client::say_no_more() const { ::shutdown(fd_, SHUT_WR); }

std::string tcp_client::hear(std::size_t bytes) {
  std::string all;
  while (all.size() < bytes) {
    const std::string more = hear_some(bytes - all.size());
    if (more.empty()) break;
    all += more;
  }
  return all;
}

std::string tcp_client::hear_some(std::size_t at_most) {
  std::array<char, 64 * 1024> buffer;
  while (true) {
    const auto n = ::recv(fd_, buffer.data(), std::min(at_most, buffer.size()), 0);
    if (n < 0 && errno == EINTR) continue;  // this process was stopped, and continues
    if (n < 0 && errno == EAGAIN) throw std::runtime_error("nothing came for so long");
    reset_ = reset_ || (n < 0 && errno == ECONNRESET);
    return {buffer.data(), n > 0 ? static_cast<std::size_t>(n) : 0};
  }
}

}  // namespace harness
