#include "store/postgres/listener.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "store/postgres/schema.hpp"
#include "store/sql/notice_text.hpp"
#include "store/sql/peer_id.hpp"

namespace holdfast::store::postgres {

using namespace std::chrono_literals;

namespace {

/// A connection that is silent for so long is asked whether it lives.
constexpr auto silence = 5s;

// Half to the whole of it, so that many who lost the same server do not come back all at once.
std::chrono::nanoseconds jittered(std::chrono::nanoseconds d) {
  const auto half = static_cast<std::uint64_t>(d.count() / 2);
  return d - std::chrono::nanoseconds(half == 0 ? 0 : sql::random_bits() % half);
}

}  // namespace

std::string channel_of(std::string_view peer) { return "holdfast_" + std::string(peer); }

listener::listener(const postgres_options& options)
    : options_(options),
      clock_(options.clock != nullptr ? *options.clock : real_clock()),
      peer_(sql::random_peer()),
      listen_("listen " + quoted(channel_of(peer_))),
      wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

listener::~listener() { ::close(wake_fd_); }

const address& listener::server() const noexcept {
  return options_.listen.parameters.empty() ? options_.server : options_.listen;
}

status listener::open() {
  if (!options_.may_listen) return done{};
  listens_ = true;
  auto listening = subscribe(boot_clock::now() + options_.connect_timeout);
  if (listening || !listens_) return done{};
  return listening;
}

// Behind a pooler a LISTEN would stay with a server that others are given next.
status listener::subscribe(boot_time deadline) {
  auto made = wire::open(server(), deadline, wake_fd_);
  if (!made) return std::move(made.error());
  if ((*made)->pooled()) {
    listens_ = false;
    return failure{errc::unsupported, "a pooler is in between; name the server in ?listen="};
  }
  if (auto ok = (*made)->ask({{listen_}}, deadline); !ok) return std::move(ok.error());
  wire_ = std::move(*made);
  heard_at_ = boot_clock::now();
  pause_ = 0ns;
  ++gaps_;
  return done{};
}

std::optional<notice> listener::receive(boot_time until) {
  for (bool looked = false; notices_.empty(); looked = true) {
    if (clear_interrupt() || (looked && clock_.now() >= until)) return std::nullopt;
    if (!wire_ && listens_) {
      reconnect_or_pause(until);
      continue;
    }
    wait(until);
    take_what_came();
    keep_alive();
  }
  notice first = std::move(notices_.front());
  notices_.pop_front();
  first.peer = peer_;
  return first;
}

void listener::interrupt() noexcept {
  const std::uint64_t one = 1;
  (void)!::write(wake_fd_, &one, sizeof one);
}

bool listener::clear_interrupt() noexcept {
  std::uint64_t count = 0;
  return ::read(wake_fd_, &count, sizeof count) == sizeof count;
}

void listener::reconnect_or_pause(boot_time until) {
  const auto now = boot_clock::now();
  if (now < next_attempt_at_) return wait(std::min(until, clock_.now() + (next_attempt_at_ - now)));
  if (!subscribe(now + options_.connect_timeout)) disconnect();
}

// Until something comes over the connection, if there is one, or somebody interrupts.
void listener::wait(boot_time until) {
  const auto look_after_it = wire_ ? heard_at_ + silence - boot_clock::now() : 60s;
  const auto longest = std::clamp<std::chrono::nanoseconds>(
      std::min<std::chrono::nanoseconds>(clock_.sleep_for(until), look_after_it), 0ns, 60s);
  const timespec timeout{longest.count() / 1'000'000'000, longest.count() % 1'000'000'000};
  pollfd both[] = {{wire_ ? wire_->fd() : -1, POLLIN, 0}, {wake_fd_, POLLIN, 0}};
  (void)::ppoll(both, 2, &timeout, nullptr);
}

void listener::take_what_came() {
  if (!wire_) return;
  const bool alive = wire_->read();
  while (const auto line = wire_->next_notification()) {
    heard_at_ = boot_clock::now();
    if (auto n = sql::decode(*line)) notices_.push_back(std::move(*n));
  }
  if (!alive) disconnect();
}

// The answer of a live server takes no longer than a round trip, and notices wait in line with it.
void listener::keep_alive() {
  static const std::string are_you_there = "select 1";
  const auto now = boot_clock::now();
  if (!wire_ || now - heard_at_ < silence) return;
  heard_at_ = now;
  if (!wire_->ask({{are_you_there}}, now + options_.command_timeout)) disconnect();
}

void listener::disconnect() {
  ++gaps_;
  wire_.reset();
  pause_ = std::clamp<std::chrono::nanoseconds>(pause_ * 2, 5ms, 1s);
  next_attempt_at_ = boot_clock::now() + jittered(pause_);
}

}  // namespace holdfast::store::postgres
