#pragma once

#include <atomic>
#include <deque>
#include <holdfast/store/inbox.hpp>

#include "base/reconnect_pause.hpp"
#include "base/wake_fd.hpp"
#include "store/postgres/opening.hpp"
#include "store/postgres/wire.hpp"

namespace holdfast::store::postgres {

/// A connection on its way to one that listens, without waiting.
class subscribing {
 public:
  subscribing(const address& to, const std::string& listen, boot_time until)
      : opening_(to, until), listen_(listen), ends_(until) {}

  /// What it does next: as long as this is `going`, once its socket has these events, or at next().
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
  std::unique_ptr<wire> made_;  ///< and asked to listen
  const std::string& listen_;
  const boot_time ends_;
};

/// LISTEN on a channel of this session's own, over a connection of its own: the thread that waits
/// reads it itself, so a grant costs no thread switch.
///
/// Where nobody may listen (a pooler) it has no connection, and waiters look again by themselves.
/// When the connection breaks it is made again, after pauses that grow, while a thread waits: step
/// by step, each no longer than the caller's deadline, and the next caller goes on where the last
/// one stopped. What was published meanwhile is lost, and gaps() says so. It is made again as well
/// if commands reach another server: notifications are sent there now.
class listener final : public inbox {
 public:
  explicit listener(const postgres_options& options);

  /// Connects, if one may listen there; it is no error if that shows to be a pooler.
  status open();
  bool listens() const noexcept { return listens_; }

  /// Where commands go now (wire::server()). Thread-safe.
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
  bool asked_ = false;  ///< whether it lives, at heard_at_
  std::atomic<std::uint64_t> gaps_{0};
  std::deque<notification> notifications_;
  boot_time heard_at_{};
  boot_time next_leaving_at_{};
  base::reconnect_pause pause_;
  bool of_use_ = false;  ///< something came over this connection
};

/// The channel of a session.
std::string channel_of(std::string_view peer);

}  // namespace holdfast::store::postgres
