#include "store/redis/subscriber.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "store/redis/errors.hpp"

namespace holdfast::store::redis {

using namespace std::chrono_literals;

namespace {

/// After so long a silence the connection is pinged; after twice that it is closed.
constexpr auto silence = 5s;

}  // namespace

subscriber::subscriber(redis_options options, std::string channel)
    : options_(std::move(options)), channel_(std::move(channel)) {}

subscriber::~subscriber() {
  stop_.set();
  if (connector_.joinable()) connector_.join();
}

status subscriber::open() {
  auto first = connect(-1);
  if (!first) return std::move(first.error());
  use(std::move(*first));
  return done{};
}

// Any thread may call this: only the caller takes over the result.
subscriber::made subscriber::connect(int wake_fd) const {
  auto greeted = greet(options_, purpose::notifications, wake_fd);
  if (!greeted || channel_.empty()) return greeted;
  std::string bytes;
  append_command(bytes, {"SUBSCRIBE", channel_});
  const auto reply =
      exchange(**greeted, bytes, 1, {boot_clock::now() + options_.connect_timeout, wake_fd});
  if (!reply) return reply.error();
  if (reply->front().is_error()) return server_says(reply->front().text);
  return greeted;
}

void subscriber::use(std::unique_ptr<connection> c) {
  connection_ = std::move(c);
  heard_at_ = boot_clock::now();
  pinged_ = false;
  ++gaps_;
}

// A waiter must not wait longer than it wants to: the attempt goes on without it, and the next
// waiter takes the outcome.
bool subscriber::reconnect() {
  if (!is_connecting()) {
    if (boot_clock::now() >= pause_.until()) begin_to_connect();
    return false;
  }
  std::optional<made> outcome;
  {
    const std::lock_guard guard{connecting_};
    outcome.swap(attempt_);
  }
  if (!outcome) return false;
  connector_.join();
  (void)done_.clear();
  if (*outcome) return use(std::move(**outcome)), true;
  ++gaps_;  // commands may succeed meanwhile, and their messages are lost
  pause_before_next();
  return false;
}

void subscriber::begin_to_connect() try {
  connector_ = std::thread([this] {
    const auto try_it = [this]() -> made {
      try {
        return connect(stop_.fd());
      } catch (...) {
        return without_memory(false);
      }
    };
    auto outcome = try_it();
    {
      const std::lock_guard guard{connecting_};
      attempt_.emplace(std::move(outcome));
    }
    done_.set();
  });
} catch (...) {
  pause_before_next();  // no thread or no memory available now
}

// A connection that received something was of use.
void subscriber::pause_before_next() {
  pause_.begin(std::exchange(useful_, false), boot_clock::now());
}

pollfd subscriber::to_poll() const noexcept {
  const auto events = static_cast<short>(unsent_.empty() ? POLLIN : POLLIN | POLLOUT);
  if (connection_) return {connection_->wire->fd(), events, 0};
  return {is_connecting() ? done_.fd() : -1, POLLIN, 0};
}

boot_time subscriber::due() const {
  if (has_bytes()) return boot_time{};
  if (connection_) return heard_at_ + (pinged_ ? 2 : 1) * silence;
  return is_connecting() ? forever : pause_.until();
}

void subscriber::read(const std::function<void(const resp_value&)>& take) {
  std::array<char, 16 * 1024> buffer;
  const auto r = connection_->wire->read(buffer, false);
  if (r.status == io::again) return;
  if (r.status != io::done) return disconnect();
  heard_at_ = boot_clock::now();
  useful_ = true;
  pinged_ = false;
  try {
    connection_->reader.put(std::string_view(buffer.data(), r.bytes));
    resp_value v;
    auto got = connection_->reader.next(v);
    for (; got == resp_reader::progress::ready; got = connection_->reader.next(v)) take(v);
    if (got == resp_reader::progress::broken) disconnect();
  } catch (...) {  // no memory: the remaining bytes would begin in the middle of a message
    if (connection_) disconnect();
    throw;
  }
}

void subscriber::keep_alive() {
  if (!connection_) return;
  const auto silent_for = boot_clock::now() - heard_at_;
  if (silent_for >= 2 * silence && pinged_) return disconnect();
  if (silent_for < silence || pinged_) return;
  pinged_ = true;
  heard_at_ = boot_clock::now() - silence;  // no thread may have been reading since
  say("*1\r\n$4\r\nPING\r\n");
}

void subscriber::say(std::string_view bytes) {
  if (!connection_) return;  // an earlier write broke it
  unsent_ += bytes;
  send_rest();
}

// Writes as much as the socket has room for; with TLS at most 16 KiB, which is some hundred
// channels.
void subscriber::send_rest() {
  while (connection_ && !unsent_.empty()) {
    const auto r = connection_->wire->write(unsent_);
    if (r.status == io::again) return;
    if (r.status != io::done) return disconnect();
    unsent_.erase(0, r.bytes);
  }
}

void subscriber::disconnect() {
  ++gaps_;
  connection_.reset();
  unsent_.clear();
  pause_before_next();
}

}  // namespace holdfast::store::redis
