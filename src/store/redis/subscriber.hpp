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

/// A connection that brings what is published. When it breaks it is made again, after pauses that
/// grow, while a waiter needs it; by a thread of its own, so that no caller waits for it. Only the
/// thread that receives uses it, except gaps().
class subscriber {
 public:
  /// The connection counts as made when it listens to `channel`; if that is empty, at once.
  explicit subscriber(redis_options options, std::string channel = {});
  ~subscriber();
  subscriber(const subscriber&) = delete;

  /// The first time, and waits for it.
  status open();
  const redis_options& options() const noexcept { return options_; }
  bool is_connected() const noexcept { return connection_ != nullptr; }
  bool is_connecting() const noexcept { return connector_.joinable(); }
  /// Where the connection goes.
  const address& at() const noexcept { return server().at; }
  const whereabouts& server() const noexcept { return connection_->server; }
  /// Without a connection: true if it has just been made. Else it is being made, or will be when it
  /// is time.
  bool reconnect();
  void disconnect();
  /// Now, or as soon as the socket has room for it.
  void say(std::string_view bytes);
  void send_rest();

  /// What says that there is something to do here.
  pollfd to_poll() const noexcept;
  /// And when there is, whether or not something comes: now, if bytes lie here already.
  boot_time due() const;
  bool has_bytes() const { return connection_ && connection_->wire->pending(); }
  void read(const std::function<void(const resp_value&)>& take);
  /// Asks a connection that is silent whether it lives, and gives it up if it does not.
  void keep_alive();

  /// How often it was not there, or may not have been.
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
  const base::wake_fd done_;  ///< it has ended
  std::thread connector_;
  std::mutex connecting_;
  std::optional<made> attempt_;  ///< what came of it; under connecting_
  std::unique_ptr<connection> connection_;
  std::string unsent_;
  std::atomic<std::uint64_t> gaps_{0};
  boot_time heard_at_{};
  bool pinged_ = false;
  bool useful_ = false;  ///< something came over this connection
  base::reconnect_pause pause_;
};

}  // namespace holdfast::store::redis
