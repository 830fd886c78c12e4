#pragma once

#include <chrono>
#include <holdfast/store/store.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/sql/session_lock_table.hpp"

namespace holdfast::store::sql {

/// Applies commands to holders and waiters, over a server's own locks. For one thread at a time:
/// session_locks ensures that, and watches the waiters.
class session_lock_service {
 public:
  /// A hold counts for `sure_for` after the server was last heard.
  session_lock_service(lock_links links, std::chrono::nanoseconds sure_for, clock& on)
      : table_(std::move(links), on), sure_for_(sure_for), clock_(on) {}

  result<permits_reply> permits(std::string_view name, const permits_command& c);
  /// Costs one round trip for each connection that holds something.
  std::vector<result<permits_reply>> execute_batch(std::span<const named_command> batch);
  std::vector<std::string> names();

  /// The notification for a waiter whose lock the server has granted. The grant may have ended
  /// since: the waiter's next request finds that out. No round trip.
  std::optional<notification> next_grant();
  /// The sockets of the waiters that the server has queued.
  std::vector<int> waiting_at();
  /// Whether a wait has begun since the last call.
  bool began_to_wait() noexcept { return std::exchange(began_to_wait_, false); }

  /// Gives up the entries that are not renewed, and returns when to call this again.
  boot_time give_up_late();
  /// At most the time when the first entry is to be given up.
  boot_time first_end() const noexcept { return first_end_; }

 private:
  result<permits_reply> carry_out(std::string_view name, const permits_command& c);
  result<permits_reply> told(result<permits_reply> reply);
  result<permits_reply> acquire(std::string_view name, const permits_command& c);
  result<permits_reply> ask_again(std::string_view name, const permits_command& c);
  session_lock_entry* still_there(session_lock_entry* mine);
  result<permits_reply> enter(std::string_view name, const permits_command& c);
  permits_reply wait_for(session_lock_entries one, const permits_command& c);
  void begin_wait(session_lock_entry& mine);
  result<permits_reply> resize(std::string_view name, const permits_command& c);
  result<permits_reply> evict(std::string_view name, const owner_id& owner);
  result<permits_reply> inspect(std::string_view name);
  permits_reply granted(const session_lock_entry& s, std::int64_t lease_us) const;
  permits_reply holds(session_lock_entry& s, std::int64_t lease_us);
  permits_reply queued(session_lock_entry& s, const permits_command& c);
  permits_reply confirm(std::string_view name, const permits_command& c);
  void ends_at(session_lock_entry& s, boot_time t);

  session_lock_table table_;
  const std::chrono::nanoseconds sure_for_;
  clock& clock_;
  boot_time first_end_ = forever;
  bool began_to_wait_ = false;
};

}  // namespace holdfast::store::sql
