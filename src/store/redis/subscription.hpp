#pragma once

#include <deque>
#include <holdfast/store/inbox.hpp>
#include <memory>
#include <vector>

#include "base/wake_fd.hpp"
#include "store/redis/subscriber.hpp"

namespace holdfast::store::redis {

/// One channel a session, on a connection of its own. The waiting thread reads the socket itself,
/// so a grant costs no thread switch; and if the server drops a slow reader, no command is lost.
///
/// Messages published while the connection was broken are lost: gaps() shows that, and the waiters
/// poll within about a second. This connection follows the command connection to another server,
/// whether sentinels name another one or the address leads there.
class subscription : public inbox {
 public:
  explicit subscription(const redis_options& options);

  status open() { return main().open(); }

  const std::string& peer() const noexcept override { return peer_; }
  std::optional<notification> receive(boot_time until) override;
  void interrupt() noexcept override { interrupt_.set(); }
  std::optional<std::uint64_t> gaps() const noexcept override;

 protected:
  /// For classes that subscribe to other channels: called by the receiving thread.
  virtual void take(subscriber& from, const resp_value& v);
  virtual void before_wait() {}
  virtual void connected(subscriber& one) { (void)one; }
  void put(notification n) { notifications_.push_back(std::move(n)); }
  subscriber& main() const noexcept { return *all_.front(); }
  const redis_options& options() const noexcept { return options_; }
  const clock& time() const noexcept { return clock_; }

  /// The first one always exists, and subscribes to the session's own channel.
  std::vector<std::unique_ptr<subscriber>> all_;

 private:
  void follow_commands();
  void wait_for_data(boot_time until);
  void read_all();

  const redis_options& options_;
  clock& clock_;
  const std::string peer_;
  const base::wake_fd interrupt_;
  std::deque<notification> notifications_;
  std::vector<pollfd> polled_;  ///< interrupt_, and each subscriber's descriptor
};

/// The notifications in a message of that type: {type, channel, text}.
std::vector<notification> told(const resp_value& v, std::string_view type);

/// The prefix of the names of all session channels.
std::string channel_prefix(const redis_options& options);

}  // namespace holdfast::store::redis
