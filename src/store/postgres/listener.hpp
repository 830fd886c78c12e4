#pragma once

#include <atomic>
#include <deque>
#include <holdfast/store/inbox.hpp>

#include "store/postgres/wire.hpp"

namespace holdfast::store::postgres {

/// LISTEN on a channel of this session's own, over a connection of its own: the thread that waits
/// reads it itself, so a grant costs no thread switch.
///
/// Where nobody may listen (a pooler) it has no connection, and waiters look again by themselves.
/// When the connection breaks it is made again, after pauses that grow, while somebody waits; what
/// was published meanwhile is lost, and gaps() says so.
class listener final : public inbox {
 public:
  explicit listener(const postgres_options& options);
  ~listener() override;

  /// Connects, if one may listen there; it is no error if that shows to be a pooler.
  status open();
  bool listens() const noexcept { return listens_; }

  const std::string& peer() const noexcept override { return peer_; }
  std::optional<notice> receive(boot_time until) override;
  std::optional<std::uint64_t> gaps() const noexcept override {
    return listens_ ? std::optional(gaps_.load()) : std::nullopt;
  }
  void interrupt() noexcept override;

 private:
  const address& server() const noexcept;
  status subscribe(boot_time deadline);
  void reconnect_or_pause(boot_time until);
  void wait(boot_time until);
  void take_what_came();
  void keep_alive();
  void disconnect();
  bool clear_interrupt() noexcept;

  const postgres_options& options_;
  clock& clock_;
  const std::string peer_;
  const std::string listen_;
  const int wake_fd_;
  std::atomic<bool> listens_{false};
  std::unique_ptr<wire> wire_;
  std::atomic<std::uint64_t> gaps_{0};
  std::deque<notice> notices_;
  boot_time heard_at_{};
  boot_time next_attempt_at_{};
  std::chrono::nanoseconds pause_{0};
};

/// The channel of a session.
std::string channel_of(std::string_view peer);

}  // namespace holdfast::store::postgres
