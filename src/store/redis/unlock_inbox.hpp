#pragma once

#include <map>
#include <mutex>
#include <set>

#include "store/redis/subscription.hpp"

namespace holdfast::store::redis {

/// Tells those who wait for a name that it was given back, or that it may have been before anybody
/// listened. One channel a name, for as long as somebody waits; sent and read by the thread that
/// receives.
class unlock_inbox final : public subscription {
 public:
  explicit unlock_inbox(const redis_options& options) : subscription(options) {}

  void wait_for(const std::string& channel, std::string_view name, const owner_id& owner);
  void done_waiting(const std::string& channel, const owner_id& owner);

 private:
  void before_wait() override;
  void connected() override;
  void take(const resp_value& v) override;

  struct waiters {
    std::string name;
    std::set<owner_id> owners;
  };
  std::mutex mutex_;
  std::map<std::string, waiters, std::less<>> wanted_;  ///< by channel
  std::set<std::string, std::less<>> listening_;        ///< of the thread that receives
  bool changed_ = false;
};

}  // namespace holdfast::store::redis
