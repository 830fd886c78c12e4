#pragma once

#include <poll.h>
#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/reconnect_pause.hpp"
#include "base/wake_fd.hpp"
#include "store/redis/handshake.hpp"

namespace holdfast::store::redis {

/// A connection that receives published messages. When it breaks, a thread of its own reconnects,
/// so that no caller waits for that: after pauses that grow, for as long as a waiter needs the
/// connection. Only the receiving thread uses this object, except gaps().
class subscriber {
 public:
  /// The connection counts as made when it has subscribed to `channel`; if that is empty, at once.
  explicit subscriber(redis_options options, std::string channel = {});
  ~subscriber();
  subscriber(const subscriber&) = delete;

  /// Makes the first connection, and waits for it.
  status open();
  const redis_options& options() const noexcept { return options_; }
  bool is_connected() const noexcept { return connection_ != nullptr; }
  bool is_connecting() const noexcept { return connector_.joinable(); }
  /// The address of the connected server.
  const address& at() const noexcept { return server().at; }
  const whereabouts& server() const noexcept { return connection_->server; }
  /// To be called without a connection. True if it has just been made. Otherwise a thread is
  /// connecting, or will when the pause ends.
  bool reconnect();
  void disconnect();
  /// Sends now, or as soon as the socket has room for it.
  void say(std::string_view bytes);
  void send_rest();

  /// The descriptor and events that show that there is something to do here.
  pollfd to_poll() const noexcept;
  /// When there is something to do even if nothing arrives: now, if bytes are buffered already.
  boot_time due() const;
  bool has_bytes() const { return connection_ && connection_->wire->pending(); }
  void read(const std::function<void(const resp_value&)>& take);
  /// Pings a silent connection, and closes it if it does not answer.
  void keep_alive();

  /// How often the connection was missing, or may have been.
  std::uint64_t gaps() const noexcept { return gaps_.load(); }

 private:
  using made = result<std::unique_ptr<connection>>;
  made connect(int wake_fd) const;
  void use(std::unique_ptr<connection> c);
  void begin_to_connect();
  void pause_before_next();

  const redis_options options_;
  const std::string channel_;
  const base::wake_fd stop_;  ///< ends the attempt to connect
  const base::wake_fd done_;  ///< signals that the attempt has ended
  std::thread connector_;
  std::mutex connecting_;
  std::optional<made> attempt_;  ///< its outcome; under connecting_
  std::unique_ptr<connection> connection_;
  std::string unsent_;
  std::atomic<std::uint64_t> gaps_{0};
  boot_time heard_at_{};
  bool pinged_ = false;
  bool useful_ = false;  ///< this connection has received something
  base::reconnect_pause pause_;
};

}  // namespace holdfast::store::redis
