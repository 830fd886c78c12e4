#include "store/redis/subscription.hpp"

#include <algorithm>

#include "base/random.hpp"
#include "base/readiness.hpp"
#include "store/redis/notification_text.hpp"

namespace holdfast::store::redis {

using namespace std::chrono_literals;

namespace {

/// If an address has led the commands to another server, it may sometimes still lead to the former
/// server. The notifications' connection is made again at most this often.
constexpr auto may_lead_back = 5s;

}  // namespace

std::string channel_prefix(const redis_options& o) { return o.prefix + ":inbox:"; }

subscription::subscription(const redis_options& options)
    : options_(options), clock_(*options.clock), peer_(base::random_id()) {
  all_.push_back(std::make_unique<subscriber>(options, channel_prefix(options) + peer_));
}

std::optional<notification> subscription::receive(boot_time until) {
  for (bool looked = false; notifications_.empty(); looked = true) {
    const bool late = clock_.now() >= until;
    if (interrupt_.clear() || (late && (looked || !main().is_connected()))) return std::nullopt;
    for (const auto& one : all_) {
      if (!one->is_connected() && one->reconnect()) connected(*one);
    }
    follow_commands();
    before_wait();
    wait_for_data(until);
    follow_commands();  // only from the server that gets the commands is a notification genuine
    read_all();
  }
  notification first = std::move(notifications_.front());
  notifications_.pop_front();
  first.peer = peer_;
  return first;
}

// In a cluster, messages pass from one node to another, and the nodes may be cut off from each
// other.
std::optional<std::uint64_t> subscription::gaps() const noexcept {
  return options_.topology == topology::cluster ? std::nullopt : std::optional(main().gaps());
}

// A server that gets no commands any more publishes nothing.
void subscription::follow_commands() {
  if (!main().is_connected()) return;
  if (options_.told_at && !options_.told_at(main().server().at)) return main().disconnect();
  if (!options_.commands_at) return;
  const whereabouts there = options_.commands_at(), here = main().server();
  if (there.at.host.empty()) return;  // the command connection is not made yet
  if (there.at != here.at) return main().disconnect();
  const bool known = there.process != 0 && here.process != 0;
  if (!known || there.process == here.process) return;
  // The newer connection went where the address leads now. If the address led back to the former
  // server, it is tried again later.
  const bool newer = there.since > here.since;
  if (newer || boot_clock::now() >= here.since + may_lead_back) main().disconnect();
}

// Wakes up in time to check each connection, too.
void subscription::wait_for_data(boot_time until) {
  std::chrono::nanoseconds longest = base::next_sleep(clock_.sleep_for(until));
  polled_.assign(1, {interrupt_.fd(), POLLIN, 0});
  for (const auto& one : all_) {
    longest = std::min<std::chrono::nanoseconds>(longest, one->due() - boot_clock::now());
    polled_.push_back(one->to_poll());
  }
  const bool follows = options_.commands_at || options_.told_at;
  longest = std::clamp<std::chrono::nanoseconds>(longest, 0ns, follows ? 1s : 60s);
  if (base::sleep_until_ready(polled_, longest) > 0) return;
  for (auto& p : polled_) p.revents = 0;
}

void subscription::read_all() {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    subscriber& one = *all_[i];
    if (!one.is_connected()) continue;
    if (polled_[i + 1].revents != 0 || one.has_bytes())
      one.read([&](const resp_value& v) { take(one, v); });
    one.send_rest();
    one.keep_alive();
  }
}

void subscription::take(subscriber&, const resp_value& v) {
  for (auto& n : told(v, "message")) put(std::move(n));
}

// Any other message is an answer to PING or SUBSCRIBE.
std::vector<notification> told(const resp_value& v, std::string_view type) {
  if (v.items.size() != 3 || v.items[0].text != type) return {};
  return parse_notifications(v.items[2].text);
}

}  // namespace holdfast::store::redis
