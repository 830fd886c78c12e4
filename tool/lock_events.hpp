#pragma once

#include <chrono>
#include <holdfast/session.hpp>
#include <string>
#include <string_view>
#include <vector>

/// The events of a lock between two polls: what `holdfast watch` prints.
namespace holdfast::tool {

enum class lock_event_kind {
  granted,   ///< a new holder
  released,  ///< released or taken away, or it is unknown how the hold ended
  handover,  ///< one holder went and one came: no poll saw the lock free
  lost,      ///< its lease ended: the holder did not renew, or died and the store sees that
  joined,    ///< a new waiter
  left,      ///< a waiter left without the lock
  holding,   ///< held it already at the first poll
  waiting,   ///< waited already at the first poll
};

/// As it is printed: "hand-over" for `handover`.
std::string_view to_string(lock_event_kind k) noexcept;

struct lock_event {
  lock_event_kind kind{};
  participant who{};     ///< the holder or waiter, present or former
  participant before{};  ///< handover: the holder that went
};

/// The lengths of leases, as far as the polls show them. A holder that renews its lease has more
/// than half of it left at any time.
class leases_seen {
 public:
  void note(const std::vector<participant>& holders);
  bool is_overdue(const participant& p) const;

 private:
  std::vector<participant> longest_;  ///< each holder when it had the most lease left
};

/// `since_last` is the time between the two polls. A holder that is gone has lost its lock if its
/// renewal was late at the poll before, and its lease has ended since. First the holders and
/// waiters that went, then those that came.
std::vector<lock_event> events_between(const name_info& before, const name_info& now,
                                       std::chrono::nanoseconds since_last,
                                       const leases_seen& leases);

/// The events of the first poll.
std::vector<lock_event> events_at_start(const name_info& now);

/// One line: `2024-05-01T12:30:00.250Z granted   web-3 pid 812 (deploy), fence 7`
std::string event_text(const lock_event& e, std::chrono::system_clock::time_point now);

}  // namespace holdfast::tool
