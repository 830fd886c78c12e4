#include "tool/faultproxy/relay.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace holdfast::faultproxy {

namespace {

// With RST, or with FIN: a close() with unread bytes would send RST.
void close_socket(int fd, bool with_reset) {
  if (with_reset) {
    const linger none{1, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  } else {
    ::shutdown(fd, SHUT_WR);
    std::array<char, 64 * 1024> rest;
    while (::recv(fd, rest.data(), rest.size(), MSG_DONTWAIT) > 0) {
    }
  }
  ::close(fd);
}

void send_at_once(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

constexpr short bad = POLLHUP | POLLERR;

// A socket without a wanted event is left out: poll would report its end again and again.
pollfd look_at(int fd, bool read, bool write) {
  const int events = (read ? POLLIN : 0) | (write ? POLLOUT : 0);
  return {events == 0 ? -1 : fd, static_cast<short>(events), 0};
}

timespec until(moment due, moment now) {
  const auto left = std::max(due - now, moment::duration::zero());
  return {left.count() / 1'000'000'000, left.count() % 1'000'000'000};
}

}  // namespace

relay::relay(const endpoint& listen, const endpoint& to)
    : to_(look_up(to)), listening_(listen_on(listen)) {
  for (const way w : both_ways) silence_[w].swallowing = true;
}

void relay::lead_to(const endpoint& to) { to_ = look_up(to); }

relay::~relay() {
  end_all(false);
  ::close(listening_);
}

void relay::heal() {
  faults_ = {};
  for (auto& c : connections_) {
    if (c.half_open || c.up.lost_bytes() || c.down.lost_bytes()) cut_one(c, true);
  }
  forget_ended();
}

void relay::cut() { end_all(false); }

void relay::reset() { end_all(true); }

void relay::half_open() {
  for (auto& c : connections_) c.half_open = true;
}

void relay::end_all(bool with_reset) {
  for (auto& c : connections_) cut_one(c, with_reset);
  forget_ended();
}

void relay::cut_one(connection& c, bool with_reset) {
  ++gone_.cut;
  end(c, with_reset);
}

void relay::end(connection& c, bool with_reset) {
  c.over = true;
  close_socket(c.client, with_reset);
  close_socket(c.server, with_reset);
}

void relay::forget_ended() {
  for (const auto& c : connections_) {
    if (!c.over) continue;
    gone_.up += c.up.passed();
    gone_.down += c.down.passed();
    gone_.round_trips += c.round_trips;
  }
  connections_.remove_if([](const connection& c) { return c.over; });
}

namespace {

std::size_t unread(int socket) noexcept {
  int bytes = 0;
  return ::ioctl(socket, FIONREAD, &bytes) == 0 ? static_cast<std::size_t>(bytes) : 0;
}

}  // namespace

relay::counts relay::count() const {
  counts all = gone_;
  all.open = connections_.size();
  for (const auto& c : connections_) {
    all.up += c.up.passed();
    all.down += c.down.passed();
    all.held += c.down.waiting() + unread(c.server);
    all.round_trips += c.round_trips;
  }
  return all;
}

bool relay::turn(int wake_fd) {
  std::vector<pollfd> all{{wake_fd, POLLIN, 0}, {listening_, POLLIN, 0}};
  for (const auto& c : connections_) add_to(all, c);
  const moment due = next_due();
  const timespec timeout = until(due, std::chrono::steady_clock::now());
  if (::ppoll(all.data(), all.size(), due == moment::max() ? nullptr : &timeout, nullptr) < 0)
    return false;
  const moment now = std::chrono::steady_clock::now();
  auto at = all.begin() + 2;
  for (auto& c : connections_) {
    serve(c, at[0].revents, at[1].revents, now);
    at += 2;
  }
  forget_ended();
  if (all[1].revents != 0) accept_all();
  return all[0].revents != 0;
}

void relay::add_to(std::vector<pollfd>& all, const connection& c) const {
  const bool reads = c.connected && c.down.wants_to_read(of(c)[way::down]);
  all.push_back(look_at(c.client, c.up.wants_to_read(of(c)[way::up]), c.down.blocked()));
  all.push_back(look_at(c.server, reads, !c.connected || c.up.blocked()));
}

moment relay::next_due() const {
  moment first = moment::max();
  for (const auto& c : connections_) {
    if (c.connected) first = std::min(first, c.up.due(of(c)[way::up]));
    first = std::min(first, c.down.due(of(c)[way::down]));
  }
  return first;
}

void relay::accept_all() {
  for (int fd; (fd = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;) {
    ++gone_.accepted;
    if (faults_.refusing)
      close_socket(fd, true);
    else
      begin(fd);
  }
}

void relay::begin(int client) {
  connection c;
  c.client = client;
  c.server = ::socket(to_.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (c.server < 0) return close_socket(client, true);
  send_at_once(c.client);
  send_at_once(c.server);
  const bool under_way = ::connect(c.server, to_.get(), to_.size) == 0 || errno == EINPROGRESS;
  if (under_way)
    connections_.push_back(std::move(c));
  else
    end(c, true);
}

bool relay::finish_connecting(connection& c) {
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(c.server, SOL_SOCKET, SO_ERROR, &error, &size);
  return c.connected = error == 0;
}

void relay::serve(connection& c, short from_client, short from_server, moment now) {
  using enum stream::result;
  if (!c.connected && from_server != 0 && !finish_connecting(c)) return end(c, true);
  const bool up_ok =
      (from_client & (POLLIN | bad)) == 0 || c.up.read(c.client, of(c), way::up, now) == fine;
  const bool down_ok = !c.connected || (from_server & (POLLIN | bad)) == 0 ||
                       c.down.read(c.server, of(c), way::down, now) == fine;
  if (!up_ok || !down_ok) return end(c, true);
  write_both(c, now);
}

void relay::write_both(connection& c, moment now) {
  using enum stream::result;
  const auto [up, down] = std::pair(c.up.passed(), c.down.passed());
  const bool up_ok = !c.connected || c.up.write(c.server, of(c), way::up, now) == fine;
  const bool down_ok = c.down.write(c.client, of(c), way::down, now) == fine;
  if (c.up.passed() > up && std::exchange(c.answered, false)) ++c.round_trips;
  if (c.down.passed() > down) c.answered = true;
  if (c.up.cut_now() || c.down.cut_now()) return cut_one(c, false);
  const bool both_closed = c.up.closed() && c.down.closed();
  if (!up_ok || !down_ok || both_closed) end(c, !both_closed);
}

}  // namespace holdfast::faultproxy
