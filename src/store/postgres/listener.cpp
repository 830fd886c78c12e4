#include "store/postgres/listener.hpp"

#include <algorithm>
#include <utility>

#include "base/random.hpp"
#include "base/readiness.hpp"
#include "store/postgres/schema.hpp"
#include "store/sql/notification_text.hpp"
#include "store/sql/over_rows.hpp"

namespace holdfast::store::postgres {

using namespace std::chrono_literals;

namespace {

/// After so long a silence, the connection is pinged.
constexpr std::chrono::nanoseconds silence = 5s;
/// The end of an answer arrives with its beginning; a waiter has its own deadline.
constexpr auto rest_of_an_answer = 50ms;

}  // namespace

std::string channel_of(std::string_view peer) { return "holdfast_" + std::string(peer); }

listener::listener(const postgres_options& options)
    : options_(options),
      clock_(*options.clock),
      peer_(base::random_id()),
      listen_("listen " + quoted(channel_of(peer_))) {}

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

// Behind a pooler a LISTEN would stay with a server connection that other clients get next.
status listener::subscribe(boot_time deadline) {
  auto made = postgres::connect(server(), deadline);
  if (!made) return std::move(made.error());
  if ((*made)->pooled()) {
    listens_ = false;
    return failure{errc::unsupported, "a pooler is in between; name the server in ?listen="};
  }
  if (auto ok = (*made)->ask({{listen_}}, deadline); !ok) return std::move(ok.error());
  subscribed(std::move(*made));
  return done{};
}

void listener::subscribed(std::unique_ptr<wire> made) {
  wire_ = std::move(made);
  heard_at_ = boot_clock::now();
  asked_ = false;
  ++gaps_;
}

std::optional<notification> listener::receive(boot_time until) {
  for (bool looked = false;; looked = true) {
    if (auto first = first_of_queue()) return first;
    if (interrupt_.clear() || (looked && clock_.now() >= until)) return std::nullopt;
    leave_another_server();
    if (!wire_ && listens_) {
      go_on_connecting(until);
      continue;
    }
    wait(until);
    take_what_came();
    keep_alive();
  }
}

std::optional<notification> listener::first_of_queue() {
  const std::lock_guard guard{mutex_};
  if (notifications_.empty()) return std::nullopt;
  notification first = std::move(notifications_.front());
  notifications_.pop_front();
  first.peer = peer_;
  return first;
}

void listener::put(const notification& n) {
  {
    const std::lock_guard guard{mutex_};
    if (notifications_.size() >= sql::most_own_notifications) notifications_.pop_front();
    notifications_.push_back(n);
  }
  interrupt_.set();
}

// Takes one step: in between, a waiter checks its deadline, and whether it was interrupted.
void listener::go_on_connecting(boot_time until) {
  using state = subscribing::state;
  const auto now = boot_clock::now();
  const std::chrono::nanoseconds left = clock_.sleep_for(until);
  if (!in_progress_ && now < pause_.until()) {
    return wait_for(-1, 0, std::min<std::chrono::nanoseconds>(left, pause_.until() - now));
  }
  if (!in_progress_) in_progress_.emplace(server(), listen_, now + options_.connect_timeout);
  switch (in_progress_->step()) {
    case state::going:
      if (now >= in_progress_->ends()) return disconnect();
      return wait_for(in_progress_->fd(), in_progress_->events(),
                      std::min<std::chrono::nanoseconds>(left, in_progress_->next() - now));
    case state::listens:
      subscribed(in_progress_->take());
      in_progress_.reset();
      return take_notifications();  // those that came with the answer
    case state::pooled:
      listens_ = false;
      return in_progress_.reset();
    case state::failed:
      return disconnect();
  }
}

// Waits until something arrives over the connection, if there is one, or until interrupted.
void listener::wait(boot_time until) {
  std::chrono::nanoseconds longest = base::next_sleep(clock_.sleep_for(until));
  if (wire_) longest = std::min(longest, silent_until() - boot_clock::now());
  wait_for(wire_ ? wire_->fd() : -1, POLLIN, longest);
}

void listener::wait_for(int fd, short events, std::chrono::nanoseconds at_most) const {
  const auto longest = std::clamp<std::chrono::nanoseconds>(at_most, 0ns, 60s);
  pollfd both[] = {{fd, events, 0}, {interrupt_.fd(), POLLIN, 0}};
  (void)base::sleep_until_ready(both, longest);
}

// Notifications that came behind the answer to a ping are buffered in libpq, while its socket is
// empty.
void listener::take_what_came() {
  if (!wire_) return;
  bool alive = wire_->read();
  take_notifications();
  if (alive && asked_ && wire_->answered()) {
    asked_ = false;
    of_use_ = true;
    heard_at_ = boot_clock::now();
    alive = static_cast<bool>(wire_->end(heard_at_ + rest_of_an_answer));
    take_notifications();
  }
  if (!alive) disconnect();
}

void listener::take_notifications() {
  while (const auto line = wire_->next_notification()) {
    of_use_ = true;
    if (!asked_) heard_at_ = boot_clock::now();
    auto n = sql::decode(*line);
    const std::lock_guard guard{mutex_};
    if (n) notifications_.push_back(std::move(*n));
  }
}

// The answer of a live server takes no longer than a round trip, and notifications are queued with
// it.
void listener::keep_alive() {
  const auto now = boot_clock::now();
  if (!wire_ || now < silent_until()) return;
  if (asked_ || !wire_->begin({"select 1"}, now)) return disconnect();
  asked_ = true;
  heard_at_ = now;
}

void listener::follow(std::int64_t server) noexcept {
  if (followed_.exchange(server) != server && listens_) interrupt();
}

// If the address still leads to the old server, it tries again later.
void listener::leave_another_server() {
  const auto now = boot_clock::now();
  if (!wire_ || wire_->server() == followed_ || now < next_leaving_at_) return;
  next_leaving_at_ = now + silence;
  disconnect();
}

boot_time listener::silent_until() const {
  return heard_at_ + (asked_ ? std::chrono::nanoseconds(options_.command_timeout) : silence);
}

void listener::disconnect() {
  ++gaps_;
  wire_.reset();
  in_progress_.reset();
  pause_.begin(std::exchange(of_use_, false), boot_clock::now());
}

// ---- a connection in the making

subscribing::state subscribing::step() {
  if (!made_) {
    const auto open = opening_.step(boot_clock::now() + rest_of_an_answer);
    if (!open) return state::failed;
    if (!*open) return state::going;
    made_ = opening_.take();
    return made_->pooled() ? state::pooled : ask_to_listen();
  }
  if (!made_->answered()) return state::going;
  return made_->end(boot_clock::now() + rest_of_an_answer) ? state::listens : state::failed;
}

subscribing::state subscribing::ask_to_listen() {
  return made_->begin({listen_}, boot_clock::now()) ? state::going : state::failed;
}

}  // namespace holdfast::store::postgres
