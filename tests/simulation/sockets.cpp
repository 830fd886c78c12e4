// The sockets of a simulated thread, as far as the memcached driver uses them. As in threads.cpp,
// this program's own definitions come before those of the C library; outside the simulation they
// pass the call on.
#ifdef HOLDFAST_WITH_MEMCACHED
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>

#include "simulation/descriptors.hpp"
#include "simulation/memcached_server.hpp"
#include "simulation/next_function.hpp"

namespace simulation {

namespace {

class simulated_socket final : public descriptor {
 public:
  short ready(short events) const noexcept override {
    if (!to || (!to->connected() && !to->refused() && !to->broken())) return 0;
    const bool input = to->has_input() || to->refused();
    return static_cast<short>(events & (input ? POLLIN | POLLOUT : POLLOUT));
  }
  void wait_here(fiber& who) override {
    if (to) to->wait_here(who);
  }
  void leave_here(const fiber& who) noexcept override {
    if (to) to->leave_here(who);
  }
  int error() const noexcept {
    return to->refused() ? ECONNREFUSED : to->broken() ? ECONNRESET : 0;
  }

  std::shared_ptr<memcached_client> to;
  nanos waits_for = never;
};

simulated_socket* socket_of(int number) {
  return dynamic_cast<simulated_socket*>(find_descriptor(number));
}

/// The result of getaddrinfo(), which freeaddrinfo() receives back.
struct named_address {
  addrinfo info{};
  sockaddr_in address{};
  memcached_server* of = nullptr;
};

int fail(int why) {
  errno = why;
  return -1;
}

bool wait_for_input(simulated_socket& s, bool at_all) {
  if (!at_all) return s.to->has_input();
  world& w = *world::running();
  const nanos until = s.waits_for == never ? never : w.now() + s.waits_for;
  while (!s.to->has_input() && w.now() < until) {
    s.wait_here(*world::self());
    (void)w.block(until, &s);
    s.leave_here(*world::self());
  }
  return s.to->has_input();
}

}  // namespace

}  // namespace simulation

using simulation::world;

extern "C" {

int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** all) {
  if (world::self() == nullptr) return HOLDFAST_REAL(getaddrinfo)(host, service, hints, all);
  auto* const of = simulation::memcached_server::named(host);
  if (of == nullptr) return EAI_NONAME;
  auto* const a = new simulation::named_address;
  a->of = of;
  a->address.sin_family = AF_INET;
  a->info.ai_family = AF_INET;
  a->info.ai_socktype = SOCK_STREAM;
  a->info.ai_addr = reinterpret_cast<sockaddr*>(&a->address);
  a->info.ai_addrlen = sizeof a->address;
  *all = &a->info;
  return 0;
}

void freeaddrinfo(addrinfo* all) noexcept {
  if (world::self() == nullptr) return HOLDFAST_REAL(freeaddrinfo)(all);
  delete reinterpret_cast<simulation::named_address*>(all);
}

int socket(int family, int kind, int protocol) noexcept {
  if (world::self() == nullptr) return HOLDFAST_REAL(socket)(family, kind, protocol);
  return simulation::open_descriptor(std::make_unique<simulation::simulated_socket>());
}

int connect(int number, const sockaddr* to, socklen_t size) {
  auto* const s = simulation::socket_of(number);
  if (s == nullptr) return HOLDFAST_REAL(connect)(number, to, size);
  const auto* const at =
      reinterpret_cast<const std::byte*>(to) - offsetof(simulation::named_address, address);
  s->to = reinterpret_cast<const simulation::named_address*>(at)->of->open(*world::self()->of);
  return simulation::fail(EINPROGRESS);
}

int fcntl(int number, int what, ...) {
  va_list more;
  va_start(more, what);
  void* const argument = va_arg(more, void*);
  va_end(more);
  auto* const s = simulation::socket_of(number);
  if (s == nullptr) return HOLDFAST_REAL(fcntl)(number, what, argument);
  return 0;
}

int setsockopt(int number, int level, int what, const void* value, socklen_t size) noexcept {
  auto* const s = simulation::socket_of(number);
  if (s == nullptr) return HOLDFAST_REAL(setsockopt)(number, level, what, value, size);
  if (level != SOL_SOCKET || what != SO_RCVTIMEO) return 0;
  timeval t{};
  std::memcpy(&t, value, sizeof t);
  s->waits_for = t.tv_sec * simulation::second + t.tv_usec * simulation::microsecond;
  return 0;
}

int getsockopt(int number, int level, int what, void* value, socklen_t* size) noexcept {
  auto* const s = simulation::socket_of(number);
  if (s == nullptr) return HOLDFAST_REAL(getsockopt)(number, level, what, value, size);
  const int error = s->error();
  std::memcpy(value, &error, sizeof error);
  return 0;
}

ssize_t send(int number, const void* from, std::size_t size, int flags) {
  auto* const s = simulation::socket_of(number);
  if (s == nullptr) return HOLDFAST_REAL(send)(number, from, size, flags);
  if (s->to->broken()) return simulation::fail(EPIPE);
  s->to->send(std::string(static_cast<const char*>(from), size));
  return static_cast<ssize_t>(size);
}

ssize_t recv(int number, void* to, std::size_t size, int flags) {
  auto* const s = simulation::socket_of(number);
  if (s == nullptr) return HOLDFAST_REAL(recv)(number, to, size, flags);
  if (!simulation::wait_for_input(*s, (flags & MSG_DONTWAIT) == 0)) return simulation::fail(EAGAIN);
  const auto some = s->to->take(size);
  std::memcpy(to, some.data(), some.size());
  return static_cast<ssize_t>(some.size());  // 0: the connection has ended
}

}  // extern "C"
#endif
