#include "store/redis/transport.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>

#include "base/keepalive.hpp"
#include "base/readiness.hpp"
#include "base/time_share.hpp"

namespace holdfast::store::redis {

namespace {

using namespace std::chrono_literals;

class plain_transport final : public transport {
 public:
  explicit plain_transport(int fd) : fd_(fd) {}
  ~plain_transport() override { ::close(fd_); }
  plain_transport(const plain_transport&) = delete;

  io_result read(std::span<char> into, bool wait) override {
    const auto n = ::recv(fd_, into.data(), into.size(), wait ? 0 : MSG_DONTWAIT);
    if (n > 0) return {io::done, static_cast<std::size_t>(n)};
    return n == 0 ? io_result{io::closed} : refused();
  }

  io_result write(std::string_view bytes) override {
    const auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return n >= 0 ? io_result{io::done, static_cast<std::size_t>(n)} : refused();
  }

  int fd() const noexcept override { return fd_; }
  void shut_down() noexcept override { ::shutdown(fd_, SHUT_RDWR); }
  std::string problem() const override { return std::strerror(error_); }

 private:
  io_result refused() {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return {io::again};
    error_ = errno;
    return {errno == ECONNRESET || errno == EPIPE ? io::closed : io::failed};
  }

  int fd_;
  std::atomic<int> error_{0};
};

void set(int fd, int level, int option, int value) {
  ::setsockopt(fd, level, option, &value, sizeof value);
}

// Detects a peer that vanished within some ten seconds of silence, and sooner if something was sent
// to it.
void tune(int fd, const redis_options& o) {
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  base::set_keepalive(
      fd, {.idle = 5s,
           .interval = 2s,
           .unacknowledged = std::max<std::chrono::milliseconds>(o.command_timeout, 1s)});
}

std::string place(const redis_options& o) {
  return o.unix_path.empty() ? o.host + ":" + std::to_string(o.port) : o.unix_path;
}

failure unreachable(const redis_options& o, const std::string& why,
                    const char* next = "is the server running, and is this its address?") {
  return {errc::unavailable, "cannot connect to " + place(o) + ": " + why + "; " + next};
}

constexpr auto check_host = "check the name of the host";

failure too_slow(const redis_options& o) {
  return unreachable(o, "no answer within " + std::to_string(o.connect_timeout.count()) + " ms");
}

/// Waits for at most 5 ms.
bool is_woken(const patience& p) {
  pollfd wake{p.wake_fd, POLLIN, 0};
  return ::poll(&wake, 1, 5) > 0;
}

// The socket is non-blocking while it connects; afterwards it is blocking, and reads have a time
// limit.
result<int> connect_to(const sockaddr* address, socklen_t size, int family, const redis_options& o,
                       const patience& p) {
  const int fd = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return unreachable(o, std::strerror(errno));
  int connected = ::connect(fd, address, size);
  // The connection queue of a Unix socket is full, and nothing signals when it has room again.
  while (connected != 0 && errno == EAGAIN && boot_clock::now() < p.until && !is_woken(p)) {
    connected = ::connect(fd, address, size);
  }
  if (connected != 0) {
    int error = errno;
    if (error == EAGAIN) return ::close(fd), too_slow(o);
    if (error == EINPROGRESS) {
      if (!wait_ready(fd, POLLOUT, p)) return ::close(fd), too_slow(o);
      socklen_t length = sizeof error;
      ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
    }
    if (error != 0) return ::close(fd), unreachable(o, std::strerror(error));
  }
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  const timeval tick{0, 100'000};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof tick);
  return fd;
}

result<int> connect_unix(const redis_options& o, const patience& p) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (o.unix_path.size() >= sizeof address.sun_path)
    return unreachable(o, "the path is too long for a socket", "use a shorter one");
  std::memcpy(address.sun_path, o.unix_path.data(), o.unix_path.size());
  return connect_to(reinterpret_cast<const sockaddr*>(&address), sizeof address, AF_UNIX, o, p);
}

result<int> connect_tcp(const redis_options& o, const patience& p) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (const int wrong =
          ::getaddrinfo(o.host.c_str(), std::to_string(o.port).c_str(), &hints, &found);
      wrong != 0) {
    return unreachable(o, ::gai_strerror(wrong), check_host);
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
  std::size_t left = 0;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) ++left;
  result<int> fd = unreachable(o, "the name has no address", check_host);
  for (const addrinfo* a = found; a != nullptr && !fd; a = a->ai_next) {
    const patience some{base::share_until(p.until, left--), p.wake_fd};
    fd = connect_to(a->ai_addr, a->ai_addrlen, a->ai_family, o, some);
  }
  if (fd) tune(*fd, o);
  return fd;
}

}  // namespace

bool wait_ready(int fd, short events, const patience& p) {
  pollfd both[] = {{fd, events, 0}, {p.wake_fd, POLLIN, 0}};
  const std::span all(both, p.wake_fd < 0 ? 1 : 2);
  return base::wait_until_ready(all, p.until) && both[0].revents != 0;
}

io write_all(transport& to, std::string_view bytes, const patience& p) {
  while (!bytes.empty()) {
    const auto r = to.write(bytes);
    if (r.status == io::done) {
      bytes.remove_prefix(r.bytes);
    } else if (r.status != io::again) {
      return r.status;
    } else if (!wait_ready(to.fd(), POLLOUT, p)) {
      return io::again;
    }
  }
  return io::done;
}

result<std::unique_ptr<transport>> connect(const redis_options& o, const patience& p) {
  auto fd = o.unix_path.empty() ? connect_tcp(o, p) : connect_unix(o, p);
  if (!fd) return std::move(fd.error());
  if (o.tls) return start_tls(*fd, o, p);
  return std::unique_ptr<transport>(std::make_unique<plain_transport>(*fd));
}

}  // namespace holdfast::store::redis
