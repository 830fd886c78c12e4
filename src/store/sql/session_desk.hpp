#pragma once

#include <chrono>
#include <holdfast/store/store.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/sql/seating.hpp"

namespace holdfast::store::sql {

/// What a command does to who holds and who waits, over a server's own locks. For one thread at a
/// time: session_locks sees to that, and watches.
class session_desk {
 public:
  /// A hold counts for `sure_for` after the server was last heard.
  session_desk(lock_links links, std::chrono::nanoseconds sure_for, clock& on)
      : seating_(std::move(links), on), sure_for_(sure_for), clock_(on) {}

  result<permits_reply> permits(std::string_view name, const permits_command& c);
  /// One round trip for each connection that holds something.
  std::vector<result<permits_reply>> renew(std::span<const renewal> batch);
  std::vector<std::string> names();

  /// Somebody who waited at the server and has it now. No round trip, but one if it may have had it
  /// for long without knowing.
  std::optional<notice> next_grant();
  /// The sockets of who waits at the server.
  std::vector<int> waiting_at();
  /// Whether somebody began to, since this was asked last.
  bool began_to_wait() noexcept { return std::exchange(began_to_wait_, false); }

  /// Gives up whom nobody renews, and says when to call this again.
  boot_time give_up_late();
  /// Not after the first of those who would be given up then.
  boot_time first_end() const noexcept { return first_end_; }

 private:
  result<permits_reply> carry_out(std::string_view name, const permits_command& c);
  result<permits_reply> acquire(std::string_view name, const permits_command& c);
  result<permits_reply> ask_again(std::string_view name, const permits_command& c);
  seats::iterator still_there(seats::iterator mine);
  result<permits_reply> enter(std::string_view name, const permits_command& c);
  permits_reply wait_for(seat mine, const permits_command& c);
  void begin_wait(seat& mine);
  result<permits_reply> resize(std::string_view name, const permits_command& c);
  result<permits_reply> evict(std::string_view name, const owner_id& owner);
  result<permits_reply> inspect(std::string_view name);
  permits_reply holds(seat& s, std::int64_t lease_us);
  permits_reply queued(seat& s, const permits_command& c);
  permits_reply confirm(std::string_view name, const permits_command& c);
  void ends_at(seat& s, boot_time t);

  seating seating_;
  const std::chrono::nanoseconds sure_for_;
  clock& clock_;
  boot_time first_end_ = forever;
  bool began_to_wait_ = false;
};

}  // namespace holdfast::store::sql
