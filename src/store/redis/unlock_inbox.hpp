#pragma once

#include <map>
#include <mutex>
#include <set>

#include "store/redis/subscription.hpp"

namespace holdfast::store::redis {

/// Tells those who wait for a name that it was given back, or that it may have been before anybody
/// listened. One channel a name, for as long as somebody waits, and no longer: programs that
/// release count those that listen, and may leave them time to come. What is sent and read is so by
/// the thread that receives, or by one that is done waiting while none does.
class unlock_inbox final : public subscription {
 public:
  explicit unlock_inbox(const redis_options& options) : subscription(options) {}

  void wait_for(const std::string& channel, std::string_view name, const owner_id& owner);
  void done_waiting(const std::string& channel, const owner_id& owner);
  /// How many releases were heard of since somebody waits there; 0 if nobody does.
  std::uint64_t heard(const std::string& channel);
  /// This connection is among those that a release is told to.
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
  std::mutex receiving_;  ///< before mutex_: by the thread that uses the connection
  std::mutex mutex_;
  std::map<std::string, waiters, std::less<>> wanted_;  ///< by channel
  std::set<std::string, std::less<>> listening_;        ///< on this connection
  bool changed_ = false;
};

}  // namespace holdfast::store::redis
