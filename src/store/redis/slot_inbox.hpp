#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <set>

#include "store/redis/subscription.hpp"

namespace holdfast::store::redis {

/// In a cluster, a message to the session's channel crosses the cluster bus to the node where the
/// session subscribes, and may be late. So the session also subscribes at the nodes that serve the
/// slots of the names it waits for, where the scripts publish first (publish_sharded.lua): one
/// channel a name, for as long as the session waits for it and somewhat longer.
///
/// This only makes notifications faster. A message that has no subscriber at the name's node is
/// published to the session's channel, so nothing has to be ready in advance. When a slot moves, or
/// a node goes away, the next answer of a node to a waiter tells where to subscribe (ADR 130).
class slot_inbox final : public subscription {
 public:
  using subscription::subscription;

  /// Grows when a node confirms the subscription to one more name. From any thread.
  std::uint64_t confirmed() const noexcept { return confirmed_.load(); }
  /// Notes that the owner is queued for the name, as the node there has just answered. `asked_at`
  /// is the value of confirmed() when the node was asked. From any thread.
  void waits_for(std::string_view name, const owner_id& owner, const address& there,
                 std::uint64_t asked_at) noexcept;

 private:
  struct channel {
    address at{};
    boot_time wanted_at{};
    bool asked_for = false;       ///< sent over the connection to that node
    std::uint64_t confirmed = 0;  ///< confirmed() at the node's confirmation; 0: none
    /// Owners that asked after that: a message with their secret arrives here first (ADR 97).
    std::set<owner_id> sure{};
  };
  using channels = std::map<std::string, channel, std::less<>>;

  void before_wait() override;
  void connected(subscriber& one) override;
  void take(subscriber& from, const resp_value& v) override;
  channels::iterator find(const subscriber& from, std::string_view channel);
  void refused(subscriber& by, std::string_view error);

  std::string channel_of(std::string_view name) const;
  void say(subscriber& to, std::string_view command, std::string_view name);
  void ask_for_all();
  void leave_old(boot_time now);
  void close_unused();
  subscriber* find(const address& at) const;

  std::mutex mutex_;
  channels wanted_;  ///< by name
  bool changed_ = false;
  bool unknown_ = false;  ///< the servers do not support it, or the user has no right to it
  boot_time swept_at_{};
  std::atomic<std::uint64_t> confirmed_{0};
};

}  // namespace holdfast::store::redis
