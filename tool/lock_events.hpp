#pragma once

#include <chrono>
#include <holdfast/session.hpp>
#include <string>
#include <string_view>
#include <vector>

/// What happened to a lock between two looks at it: what `holdfast watch` prints.
namespace holdfast::tool {

enum class lock_event_kind {
  granted,   ///< a new holder
  released,  ///< given back or taken away, or it is not known how the hold ended
  handover,  ///< one holder went and one came: the lock was free for no look
  lost,      ///< its lease ended: a holder that did not renew; or it died, and the store sees it
  joined,    ///< a new waiter
  left,      ///< a waiter has left without the lock
  holding,   ///< held it already at the first look
  waiting,   ///< waited already at the first look
};

/// As it is printed: "hand-over" for `handover`.
std::string_view to_string(lock_event_kind k) noexcept;

struct lock_event {
  lock_event_kind kind{};
  participant who{};     ///< that holds, held, waits, waited
  participant before{};  ///< handover: the holder that went
};

/// What the looks so far say of the lengths of leases. A holder that renews its lease has more than
/// half of it left at any time.
class leases_seen {
 public:
  void note(const std::vector<participant>& holders);
  bool is_overdue(const participant& p) const;

 private:
  std::vector<participant> longest_;  ///< each holder as it was when it had the most left
};

/// `since_last` is the time between the two looks. A holder that is gone has lost its lock if it
/// was late to renew at the look before, and its lease has ended since. First those that went, then
/// those that came.
std::vector<lock_event> events_between(const name_info& before, const name_info& now,
                                       std::chrono::nanoseconds since_last,
                                       const leases_seen& leases);

/// What the first look finds.
std::vector<lock_event> events_at_start(const name_info& now);

/// One line: `2024-05-01T12:30:00.250Z granted   web-3 pid 812 (deploy), fence 7`
std::string event_text(const lock_event& e, std::chrono::system_clock::time_point now);

}  // namespace holdfast::tool
