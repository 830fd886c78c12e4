#pragma once

#include <atomic>
#include <deque>
#include <holdfast/store/inbox.hpp>
#include <mutex>

#include "base/reconnect_pause.hpp"
#include "base/wake_fd.hpp"
#include "store/postgres/opening.hpp"
#include "store/postgres/wire.hpp"

namespace holdfast::store::postgres {

/// A subscription in the making: connects and sends LISTEN, without waiting.
class subscribing {
 public:
  subscribing(const address& to, const std::string& listen, boot_time until)
      : opening_(to, until), listen_(listen), ends_(until) {}

  /// Takes the next step. While the result is `going`, call it again when the socket has these
  /// events, or at next().
  enum class state { going, listens, pooled, failed };
  state step();
  int fd() const noexcept { return made_ ? made_->fd() : opening_.fd(); }
  short events() const noexcept { return made_ ? made_->wants() : opening_.wants(); }
  boot_time next() const noexcept { return made_ ? ends_ : opening_.next(); }
  boot_time ends() const noexcept { return ends_; }
  std::unique_ptr<wire> take() noexcept { return std::move(made_); }

 private:
  state ask_to_listen();

  opening opening_;
  std::unique_ptr<wire> made_;  ///< connected, LISTEN sent
  const std::string& listen_;
  const boot_time ends_;
};

/// LISTEN on this session's own channel, over a connection of its own. The waiting thread reads the
/// connection itself, so a grant costs no thread switch.
///
/// Without the possibility to listen (behind a pooler) there is no connection, and waiters poll;
/// only notifications by the session itself reach them.
/// When the connection breaks, waiting threads reconnect, after pauses that grow: step by step,
/// each no longer than the caller's deadline, and the next caller goes on where the last one
/// stopped. Notifications published meanwhile are lost, which gaps() shows. It also reconnects if
/// the commands reach another server, because notifications are published there now.
class listener final : public inbox {
 public:
  explicit listener(const postgres_options& options);

  /// Connects, if listening is allowed. Finding a pooler is no failure.
  status open();
  bool listens() const noexcept { return listens_; }
  /// A notification by this session for one of its own waiters. Thread-safe.
  void put(const notification& n);

  /// Tells which server the commands reach now (wire::server()). Thread-safe.
  void follow(std::int64_t server) noexcept;

  const std::string& peer() const noexcept override { return peer_; }
  std::optional<notification> receive(boot_time until) override;
  std::optional<std::uint64_t> gaps() const noexcept override {
    return listens_ ? std::optional(gaps_.load()) : std::nullopt;
  }
  void interrupt() noexcept override { interrupt_.set(); }

 private:
  const address& server() const noexcept;
  status subscribe(boot_time deadline);
  void go_on_connecting(boot_time until);
  void subscribed(std::unique_ptr<wire> made);
  void wait(boot_time until);
  void wait_for(int fd, short events, std::chrono::nanoseconds at_most) const;
  void take_what_came();
  void take_notifications();
  std::optional<notification> first_of_queue();
  void keep_alive();
  void leave_another_server();
  boot_time silent_until() const;
  void disconnect();

  const postgres_options& options_;
  clock& clock_;
  const std::string peer_;
  const std::string listen_;
  const base::wake_fd interrupt_;
  std::atomic<bool> listens_{false};
  std::atomic<std::int64_t> followed_{0};
  std::unique_ptr<wire> wire_;
  std::optional<subscribing> in_progress_;
  bool asked_ = false;  ///< a ping was sent, at heard_at_
  std::atomic<std::uint64_t> gaps_{0};
  std::mutex mutex_;
  std::deque<notification> notifications_;  ///< guarded by `mutex_`
  boot_time heard_at_{};
  boot_time next_leaving_at_{};
  base::reconnect_pause pause_;
  bool of_use_ = false;  ///< this connection has received something
};

/// The channel of a session.
std::string channel_of(std::string_view peer);

}  // namespace holdfast::store::postgres
