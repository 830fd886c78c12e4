#pragma once

#include <atomic>
#include <deque>
#include <holdfast/store/inbox.hpp>
#include <mutex>
#include <thread>
#include <vector>

#include "store/redis/handshake.hpp"

namespace holdfast::store::redis {

/// One channel a session, on a connection of its own: the thread that waits reads the socket
/// itself, so a grant costs no thread switch, and a slow reader that the server throws out loses no
/// command.
///
/// When the connection breaks it is made again, after pauses that grow, while somebody waits; by a
/// thread of its own, so that nobody waits for it. What was published meanwhile is lost: gaps()
/// says so, and the waiters look for themselves within about a second. Behind sentinels it follows
/// the connection for commands to another primary.
class subscription : public inbox {
 public:
  explicit subscription(const redis_options& options);
  ~subscription() override;

  status open();

  const std::string& peer() const noexcept override { return peer_; }
  std::optional<notification> receive(boot_time until) override;
  void interrupt() noexcept override;
  std::optional<std::uint64_t> gaps() const noexcept override;

 protected:
  /// For who listens to something else: called by the thread that receives.
  virtual void take(const resp_value& v);
  virtual void before_wait() {}  ///< with a connection, before it sleeps
  virtual void connected() {}
  void put(notification n) { notifications_.push_back(std::move(n)); }
  void say(std::string_view bytes);
  bool is_connected() const noexcept { return connection_ != nullptr; }

 private:
  enum class event { data, interrupted, time };

  using made = result<std::unique_ptr<connection>>;
  made subscribe(int wake_fd) const;
  void use(std::unique_ptr<connection> c);
  void reconnect_or_pause(boot_time until);
  void begin_to_connect();
  void follow_commands();
  void sleep(std::chrono::nanoseconds longest);
  event wait_for_data(boot_time until);
  void read_all();
  void keep_alive();
  void disconnect();
  void pause_before_next();
  bool clear_interrupt() noexcept;

  const redis_options& options_;
  clock& clock_;
  const std::string peer_;
  const std::string channel_;
  const int wake_fd_;
  const int stop_fd_;  ///< ends the attempt to connect
  const int done_fd_;  ///< it has ended
  std::thread connector_;
  std::mutex connecting_;
  std::optional<made> attempt_;  ///< what came of it; under connecting_
  std::unique_ptr<connection> connection_;
  std::atomic<std::uint64_t> gaps_{0};
  std::deque<notification> notifications_;
  boot_time heard_at_{};
  bool pinged_ = false;
  bool useful_ = false;  ///< something came over this connection
  boot_time next_attempt_at_{};
  std::chrono::nanoseconds pause_{0};
};

/// The channel of a session, and the beginning of all such names.
std::string channel_prefix(const redis_options& options);

/// Reads `granted <owner> <fence> <expires_at> <key>`, or `passed <owner> <fence> <expires_at>
/// <secret> <key>`; instead of one owner several, with a `+` between them, who are told the same.
/// Empty if it is something else.
std::vector<notification> parse_notifications(std::string_view text);

}  // namespace holdfast::store::redis
