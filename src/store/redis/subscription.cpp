#include "store/redis/subscription.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

#include "store/redis/errors.hpp"
#include "store/redis/keys.hpp"
#include "store/redis/random.hpp"

namespace holdfast::store::redis {

using namespace std::chrono_literals;

namespace {

/// A connection that is silent for so long is asked whether it lives; and given up after twice
/// that.
constexpr auto silence = 5s;

std::string_view next_word(std::string_view& text, char between = ' ') {
  const auto space = std::min(text.find(between), text.size());
  const auto word = text.substr(0, space);
  text.remove_prefix(std::min(space + 1, text.size()));
  return word;
}

constexpr std::size_t longest_key = 4'096;
constexpr std::size_t longest_owners = 33 * 10'000;  // a barrier's, of one session

template <class Number>
bool read_number(std::string_view word, Number& number) {
  const auto [after, wrong] = std::from_chars(word.data(), word.data() + word.size(), number);
  return wrong == std::errc{} && after == word.data() + word.size();
}

}  // namespace

std::string channel_prefix(const redis_options& o) { return o.prefix + ":inbox:"; }

std::vector<notification> parse_notifications(std::string_view text) {
  notification n;
  const auto what = next_word(text);
  const bool passed = what == "passed";  // granted, with a secret
  auto owners = next_word(text);
  if ((!passed && !parse_notification_kind(what, n.what)) ||
      n.what == notification_kind::departed || !read_number(next_word(text), n.fence) ||
      !read_number(next_word(text), n.expires_at) ||
      (passed && !parse_owner_id(next_word(text), n.secret))) {
    return {};
  }
  // Each owner has a copy of the name, and anybody may publish.
  if (text.size() > longest_key || owners.size() > longest_owners) return {};
  n.name = name_of_key(text);
  std::vector<notification> all;
  do {
    if (!parse_owner_id(next_word(owners, '+'), n.owner)) return {};
    all.push_back(n);
  } while (!owners.empty());
  return all;
}

subscription::subscription(const redis_options& options)
    : options_(options),
      clock_(options.clock != nullptr ? *options.clock : real_clock()),
      peer_(random_id()),
      channel_(channel_prefix(options) + peer_),
      wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      stop_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      done_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

subscription::~subscription() {
  (void)::eventfd_write(stop_fd_, 1);
  if (connector_.joinable()) connector_.join();
  ::close(done_fd_);
  ::close(stop_fd_);
  ::close(wake_fd_);
}

status subscription::open() {
  auto first = subscribe(-1);
  if (!first) return std::move(first.error());
  use(std::move(*first));
  return done{};
}

// For any thread: what it learns is for the caller to take.
subscription::made subscription::subscribe(int wake_fd) const {
  auto greeted = greet(options_, purpose::notifications, wake_fd);
  if (!greeted) return greeted;
  std::string bytes;
  const std::array<std::string_view, 2> words{"SUBSCRIBE", channel_};
  append_command(bytes, words);
  const auto reply =
      exchange(**greeted, bytes, 1, {boot_clock::now() + options_.connect_timeout, wake_fd});
  if (!reply) return reply.error();
  if (reply->front().is_error()) return server_says(reply->front().text);
  return greeted;
}

void subscription::use(std::unique_ptr<connection> c) {
  connection_ = std::move(c);
  heard_at_ = boot_clock::now();
  pinged_ = false;
  ++gaps_;
  connected();
}

std::optional<notification> subscription::receive(boot_time until) {
  for (bool looked = false; notifications_.empty(); looked = true) {
    const bool late = clock_.now() >= until;
    if (clear_interrupt() || (late && (looked || !connection_))) return std::nullopt;
    if (!connection_) {
      reconnect_or_pause(until);
      continue;
    }
    follow_commands();
    if (connection_) before_wait();
    if (!connection_) continue;
    if (wait_for_data(until) == event::data) {
      follow_commands();  // only where the commands go is a notification read before it is forged
      if (connection_) read_all();
    }
    keep_alive();
  }
  notification first = std::move(notifications_.front());
  notifications_.pop_front();
  first.peer = peer_;
  return first;
}

// In a cluster they come from one node over another, which may be cut off from each other.
std::optional<std::uint64_t> subscription::gaps() const noexcept {
  return options_.topology == topology::cluster ? std::nullopt : std::optional(gaps_.load());
}

void subscription::interrupt() noexcept {
  const std::uint64_t one = 1;
  (void)!::write(wake_fd_, &one, sizeof one);
}

bool subscription::clear_interrupt() noexcept {
  std::uint64_t count = 0;
  return ::read(wake_fd_, &count, sizeof count) == sizeof count;
}

// Whoever waits for a notification waits no longer than it wants to: the attempt goes on without
// it, and who waits next finds what came of it.
void subscription::reconnect_or_pause(boot_time until) {
  if (connector_.joinable()) {
    std::optional<made> outcome;
    {
      const std::lock_guard guard{connecting_};
      outcome.swap(attempt_);
    }
    if (!outcome) return sleep(clock_.sleep_for(until));
    connector_.join();
    if (*outcome) return use(std::move(**outcome));
    ++gaps_;  // commands may go through meanwhile, and what they tell is lost
    pause_before_next();
    return;
  }
  const auto now = boot_clock::now();
  if (now < next_attempt_at_)
    return sleep(
        std::min<std::chrono::nanoseconds>(next_attempt_at_ - now, clock_.sleep_for(until)));
  begin_to_connect();
}

void subscription::begin_to_connect() try {
  connector_ = std::thread([this] {
    const auto try_it = [this]() -> made {
      try {
        return subscribe(stop_fd_);
      } catch (...) {
        return failure{errc::unavailable, "no memory"};
      }
    };
    auto outcome = try_it();
    {
      const std::lock_guard guard{connecting_};
      attempt_.emplace(std::move(outcome));
    }
    (void)::eventfd_write(done_fd_, 1);
  });
} catch (...) {
  pause_before_next();  // no thread to be had now, or no memory
}

// Until somebody wakes us, or the attempt has ended.
void subscription::sleep(std::chrono::nanoseconds longest) {
  const auto most = std::clamp<std::chrono::nanoseconds>(longest, 0ns, 60s);
  const timespec timeout{most.count() / 1'000'000'000, most.count() % 1'000'000'000};
  pollfd both[] = {{done_fd_, POLLIN, 0}, {wake_fd_, POLLIN, 0}};
  (void)::ppoll(both, 2, &timeout, nullptr);
  eventfd_t times = 0;
  (void)::eventfd_read(done_fd_, &times);
}

// Where nobody commands any more nothing is told.
void subscription::follow_commands() {
  if (!options_.commands_at || !connection_) return;
  const address there = options_.commands_at();
  if (!there.host.empty() && there != connection_->at) disconnect();
}

// As in link: one over which nothing ever came is as bad as none.
void subscription::pause_before_next() {
  pause_ = useful_ ? 0ns : std::clamp<std::chrono::nanoseconds>(pause_ * 2, 5ms, 1s);
  useful_ = false;
  next_attempt_at_ = boot_clock::now() + jittered(pause_);
}

// Wakes up in time to ask whether the connection lives, too.
subscription::event subscription::wait_for_data(boot_time until) {
  if (connection_->wire->pending()) return event::data;
  const auto look_after_it = heard_at_ + (pinged_ ? 2 : 1) * silence - boot_clock::now();
  const auto longest = std::clamp<std::chrono::nanoseconds>(
      std::min<std::chrono::nanoseconds>(clock_.sleep_for(until), look_after_it), 0ns,
      options_.commands_at ? 1s : 60s);
  const timespec timeout{longest.count() / 1'000'000'000, longest.count() % 1'000'000'000};
  pollfd both[] = {{connection_->wire->fd(), POLLIN, 0}, {wake_fd_, POLLIN, 0}};
  const int n = ::ppoll(both, 2, &timeout, nullptr);
  if (n > 0 && both[0].revents != 0) return event::data;
  return n > 0 ? event::interrupted : event::time;
}

void subscription::read_all() {
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
  } catch (...) {  // no memory: the rest of what came would begin in the middle of a message
    if (connection_) disconnect();
    throw;
  }
}

// Three words: message, channel, text. Anything else is an answer to PING or SUBSCRIBE.
void subscription::take(const resp_value& v) {
  if (v.items.size() != 3 || v.items[0].text != "message") return;
  for (auto& n : parse_notifications(v.items[2].text)) put(std::move(n));
}

void subscription::keep_alive() {
  if (!connection_) return;
  const auto silent_for = boot_clock::now() - heard_at_;
  if (silent_for >= 2 * silence && pinged_) return disconnect();
  if (silent_for < silence || pinged_) return;
  pinged_ = true;
  heard_at_ = boot_clock::now() - silence;  // it may have been nobody's turn to listen
  say("*1\r\n$4\r\nPING\r\n");
}

void subscription::say(std::string_view bytes) {
  if (connection_->wire->write(bytes).status != io::done) disconnect();
}

void subscription::disconnect() {
  ++gaps_;
  connection_.reset();
  pause_before_next();
}

}  // namespace holdfast::store::redis
