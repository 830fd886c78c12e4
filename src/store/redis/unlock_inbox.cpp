#include "store/redis/unlock_inbox.hpp"

namespace holdfast::store::redis {

void unlock_inbox::wait_for(const std::string& channel, std::string_view name,
                            const owner_id& owner) {
  const std::lock_guard guard{mutex_};
  auto& there = wanted_[channel];
  there.name = name;
  there.owners.insert(owner);
  changed_ = true;
  interrupt();
}

// The receiving thread unsubscribes before it sleeps again.
void unlock_inbox::done_waiting(const std::string& channel, const owner_id& owner) {
  std::unique_lock lock{mutex_};
  const auto at = wanted_.find(channel);
  if (at == wanted_.end() || at->second.owners.erase(owner) == 0) return;
  if (!at->second.owners.empty()) return;
  wanted_.erase(at);
  changed_ = true;
  lock.unlock();
  const std::unique_lock alone{receiving_, std::try_to_lock};
  if (!alone) return interrupt();
  before_wait();
}

std::optional<notification> unlock_inbox::receive(boot_time until) {
  const std::lock_guard alone{receiving_};
  return subscription::receive(until);
}

std::uint64_t unlock_inbox::heard(const std::string& channel) {
  const std::lock_guard guard{mutex_};
  const auto at = wanted_.find(channel);
  return at == wanted_.end() ? 0 : at->second.heard;
}

bool unlock_inbox::listens(const std::string& channel) {
  const std::lock_guard guard{mutex_};
  return listening_.contains(channel);
}

void unlock_inbox::connected(subscriber&) {
  const std::lock_guard guard{mutex_};
  listening_.clear();
  changed_ = true;
}

void unlock_inbox::before_wait() {
  const std::lock_guard guard{mutex_};
  if (!changed_ || !main().is_connected()) return;
  changed_ = false;
  std::string bytes;
  for (const auto& [channel, who] : wanted_) {
    if (listening_.insert(channel).second) append_command(bytes, {"SUBSCRIBE", channel});
  }
  std::erase_if(listening_, [&](const std::string& channel) {
    if (wanted_.contains(channel)) return false;
    append_command(bytes, {"UNSUBSCRIBE", channel});
    return true;
  });
  if (!bytes.empty()) main().say(bytes);
}

// {message, channel, text}; {subscribe, channel, count}: releases before the subscription were
// missed.
void unlock_inbox::take(subscriber&, const resp_value& v) {
  if (v.items.size() != 3 || (v.items[0].text != "message" && v.items[0].text != "subscribe")) {
    return;
  }
  const std::lock_guard guard{mutex_};
  const auto at = wanted_.find(v.items[1].text);
  if (at == wanted_.end()) return;
  if (v.items[0].text == "message") ++at->second.heard;
  for (const auto& owner : at->second.owners) {
    put({notification_kind::granted, at->second.name, owner, 0, 0, {}});
  }
}

}  // namespace holdfast::store::redis
