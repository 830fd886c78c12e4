#include "store/redis/slot_inbox.hpp"

#include <algorithm>

#include "store/redis/keys.hpp"
#include "store/redis/slot_map.hpp"

namespace holdfast::store::redis {

using namespace std::chrono_literals;

namespace {

/// The session may soon wait for the name again.
constexpr auto kept_for = 60s;
constexpr auto sweep_every = 10s;
/// The most names; messages for other names come over the bus.
constexpr std::size_t most_names = 1'000;
/// Owners that gave up are still among them. An owner that is missing asks the server.
constexpr std::size_t most_owners = 1'000;

// The bus does not keep the order, and another node may be faster than the name's node (ADR 97).
notification unproven(notification n) {
  n.secret = {};
  return n;
}

address address_of(const subscriber& one) { return {one.options().host, one.options().port}; }

}  // namespace

void slot_inbox::waits_for(std::string_view name, const owner_id& owner, const address& there,
                           std::uint64_t asked_at) noexcept try {
  const std::lock_guard guard{mutex_};
  auto at = wanted_.find(name);
  if (at == wanted_.end()) {
    if (unknown_ || wanted_.size() >= most_names) return;
    at = wanted_.emplace(name, channel{}).first;
  }
  channel& one = at->second;
  one.wanted_at = time().now();
  if (one.at != there) {
    one = {there, one.wanted_at};
    changed_ = true;
    interrupt();
  } else if (one.confirmed != 0 && one.confirmed <= asked_at) {
    if (one.sure.size() >= most_owners) one.sure.clear();
    one.sure.insert(owner);
  }
} catch (...) {
  // No memory: does not subscribe to the name.
}

void slot_inbox::before_wait() {
  const std::lock_guard guard{mutex_};
  if (!changed_ && all_.size() == 1) return;
  const auto now = time().now();
  if (!changed_ && now < swept_at_ + sweep_every) return;
  changed_ = false;
  swept_at_ = now;
  leave_old(now);
  ask_for_all();
  close_unused();
}

void slot_inbox::connected(subscriber& one) {
  const std::lock_guard guard{mutex_};
  changed_ = true;
  if (&one == &main()) {
    unknown_ = false;  // another node, or the same one after an upgrade
    return;
  }
  for (auto& [name, c] : wanted_) {
    if (c.at == one.at()) c = {c.at, c.wanted_at};
  }
}

// {smessage, channel, text}; {ssubscribe or sunsubscribe, channel, count}. The latter also comes
// unasked when the slot has moved: if the session still waits for the name, the next answer tells
// the new node.
void slot_inbox::take(subscriber& from, const resp_value& v) {
  if (options().topology != topology::cluster) return subscription::take(from, v);
  if (&from == &main()) {
    for (auto& n : told(v, "message")) put(unproven(std::move(n)));
    return;
  }
  if (v.is_error()) return refused(from, v.text);
  if (v.items.size() != 3) return;
  const std::lock_guard guard{mutex_};
  const auto at = find(from, v.items[1].text);
  for (auto& n : told(v, "smessage")) {
    const bool here = at != wanted_.end() && at->first == n.name;
    const bool sure = here && at->second.sure.erase(n.owner) > 0;
    put(sure ? std::move(n) : unproven(std::move(n)));
  }
  if (at == wanted_.end()) return;
  if (v.items[0].text == "ssubscribe") at->second.confirmed = ++confirmed_;
  if (v.items[0].text == "sunsubscribe") wanted_.erase(at);
}

slot_inbox::channels::iterator slot_inbox::find(const subscriber& from, std::string_view of) {
  const auto at = wanted_.find(name_of_key(of.substr(0, of.rfind(':'))));
  return at != wanted_.end() && at->second.at == from.at() ? at : wanted_.end();
}

// A redirection or a temporary error concerns only this node, or this slot. Any other error means
// that the servers are older than 7.0, or that the user lacks a right: notifications work without
// this channel, too.
void slot_inbox::refused(subscriber& by, std::string_view error) {
  const std::lock_guard guard{mutex_};
  const auto moved = read_redirection(error, by.at());
  unknown_ = !moved && !says_later(error);
  changed_ = true;
  std::erase_if(wanted_, [&](const auto& one) {
    if (unknown_) return true;
    return one.second.at == by.at() && (!moved || slot_of(one.first) == moved->slot);
  });
}

std::string slot_inbox::channel_of(std::string_view name) const {
  return channel_prefix(options()) + '{' + hash_tag(name) + "}:" + peer();
}

void slot_inbox::say(subscriber& to, std::string_view command, std::string_view name) {
  std::string bytes;
  append_command(bytes, {command, channel_of(name)});
  to.say(bytes);
}

void slot_inbox::ask_for_all() {
  for (auto& [name, c] : wanted_) {
    if (c.asked_for) continue;
    subscriber* const there = find(c.at);
    if (there == nullptr) {
      redis_options o = options();
      o.host = c.at.host;
      o.port = c.at.port;
      o.locate = nullptr;
      all_.push_back(std::make_unique<subscriber>(std::move(o)));
    } else if (there->is_connected()) {
      say(*there, "SSUBSCRIBE", name);
      c.asked_for = true;
    }
  }
}

void slot_inbox::leave_old(boot_time now) {
  std::erase_if(wanted_, [&](const auto& one) {
    const auto& [name, c] = one;
    if (now < c.wanted_at + kept_for) return false;
    subscriber* const there = find(c.at);
    if (c.asked_for && there != nullptr && there->is_connected()) say(*there, "SUNSUBSCRIBE", name);
    return true;
  });
}

// Keeps a subscriber that is just connecting: ending the attempt may take as long as the lookup of
// its host.
void slot_inbox::close_unused() {
  const auto is_used = [&](const subscriber& s) {
    return &s == &main() || s.is_connecting() ||
           std::any_of(wanted_.begin(), wanted_.end(),
                       [&](const auto& one) { return one.second.at == address_of(s); });
  };
  std::erase_if(all_, [&](const auto& s) { return !is_used(*s); });
}

subscriber* slot_inbox::find(const address& at) const {
  const auto found = std::find_if(all_.begin() + 1, all_.end(),
                                  [&](const auto& s) { return address_of(*s) == at; });
  return found == all_.end() ? nullptr : found->get();
}

}  // namespace holdfast::store::redis
