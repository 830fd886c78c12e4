#pragma once

#include <map>
#include <mutex>
#include <set>

#include "store/redis/subscription.hpp"

namespace holdfast::store::redis {

/// Notifies the waiters of a name that it was released, or that it may have been before they
/// subscribed. Subscribes to one channel a name, exactly while the name has a waiter: programs that
/// release count the subscribers, and may leave them time to come. The receiving thread sends and
/// reads; while there is none, a thread that stops waiting does.
class unlock_inbox final : public subscription {
 public:
  explicit unlock_inbox(const redis_options& options) : subscription(options) {}

  void wait_for(const std::string& channel, std::string_view name, const owner_id& owner);
  void done_waiting(const std::string& channel, const owner_id& owner);
  /// How many releases were received since the channel has had a waiter; 0 without one.
  std::uint64_t heard(const std::string& channel);
  /// True if the server has confirmed this connection's subscription to the channel.
  bool listens(const std::string& channel);

  std::optional<notification> receive(boot_time until) override;

 private:
  void before_wait() override;
  void connected(subscriber& one) override;
  void take(subscriber& from, const resp_value& v) override;

  struct waiters {
    std::string name;
    std::set<owner_id> owners;
    std::uint64_t heard = 0;
  };
  std::mutex receiving_;  ///< locked before mutex_; held by the thread that uses the connection
  std::mutex mutex_;
  std::map<std::string, waiters, std::less<>> wanted_;  ///< by channel
  std::set<std::string, std::less<>> listening_;        ///< confirmed on this connection
  bool changed_ = false;
};

}  // namespace holdfast::store::redis
