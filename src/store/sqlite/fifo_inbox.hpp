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

/// The notifications of one session, in a named pipe beside the database. A pipe holds 64 KiB of
/// notifications (a datagram socket ten), has no limit of 108 bytes for its path, and reports to
/// the sender for certain when no process reads it any more.
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

  /// Puts the notification into the inbox of `to.peer`. Returns false only if certainly no process
  /// reads that inbox.
  bool send(const notification& to);

  /// True if that session's process has certainly ended.
  bool departed(std::string_view who) { return watched_->departed(who); }

  /// In a child process: closes the descriptors that would keep the parent's pipe alive.
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

  // Pipes of other sessions, kept open: a session is often notified again soon.
  std::mutex sending_;
  std::unordered_map<std::string, file_descriptor> pipes_;

  // Used only by the thread in receive().
  std::string partial_;
  std::deque<notification> arrived_;
};

/// Removes the inboxes of processes that died without removing them.
void remove_inboxes_of_the_dead(const sidecar& beside, const peer& self) noexcept;

}  // namespace holdfast::store::sqlite
