#pragma once

#include <atomic>
#include <deque>
#include <holdfast/result.hpp>
#include <holdfast/store/inbox.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "store/sqlite/database_path.hpp"
#include "store/sqlite/file_descriptor.hpp"
#include "store/sqlite/forkable.hpp"
#include "store/sqlite/peer.hpp"
#include "store/sqlite/watchlist.hpp"

namespace holdfast::store::sqlite {

/// Notices of one session, in a named pipe beside the database. A pipe takes 64 KiB of
/// notifications (a datagram socket ten), has no limit of 108 bytes for its path, and tells the
/// sender for certain that nobody reads it any more.
class fifo_inbox final : public inbox {
 public:
  /// `beside`, `owner` and `time` must outlive it.
  static result<std::unique_ptr<fifo_inbox>> open(const sidecar& beside, const sqlite::peer& self,
                                                  const forkable& owner, holdfast::clock& time);
  ~fifo_inbox() override;

  const std::string& peer() const noexcept override { return name_; }
  std::optional<notification> receive(boot_time until) override;
  void interrupt() noexcept override;
  void watch(std::string_view who) override;
  void unwatch(std::string_view who) noexcept override;

  /// Puts the notification into the inbox of `to.peer`. False only if certainly nobody reads it.
  bool send(const notification& to);

  /// Whether that session's process has certainly ended.
  bool departed(std::string_view who) { return watched_->departed(who); }

  /// In a child process: lets go of what would keep the parent's pipe alive.
  void abandon() noexcept;

 private:
  fifo_inbox(const sidecar& beside, const sqlite::peer& self, const forkable& owner,
             holdfast::clock& time);
  status make_pipe();
  status listen();
  bool add_to_poll(int fd, std::uint64_t key) const noexcept;
  void wake() const noexcept;
  void sleep(boot_time until);
  file_descriptor open_pipe_of(const std::string& who) const noexcept;
  bool is_certainly_closed(int error_number) const noexcept;
  void read_pipe();
  void take_lines();
  std::optional<notification> next();

  const sidecar& beside_;
  const forkable& owner_;
  const sqlite::peer self_;
  const std::string name_;
  holdfast::clock& clock_;
  std::optional<int> wake_id_;
  file_descriptor pipe_;
  file_descriptor event_;
  file_descriptor poll_;
  std::optional<watchlist> watched_;
  std::atomic<bool> interrupted_{false};

  // Pipes of others, kept open: a session that was notified once is soon notified again.
  std::mutex sending_;
  std::unordered_map<std::string, file_descriptor> pipes_;

  // Only the thread in receive().
  std::string partial_;
  std::deque<notification> arrived_;
};

/// Removes the inboxes of processes that died without doing so themselves.
void remove_inboxes_of_the_dead(const sidecar& beside, const peer& self) noexcept;

}  // namespace holdfast::store::sqlite
