#pragma once

#include <chrono>
#include <holdfast/session.hpp>
#include <string>
#include <string_view>
#include <vector>

/// What happened to a lock between two looks at it: what `holdfast watch` prints.
namespace holdfast::tool {

enum class lock_event_kind {
  granted,   ///< somebody holds it who did not before
  released,  ///< somebody gave it back, or it was taken away from somebody
  handover,  ///< one holder went and one came: the lock was free for no look
  lost,      ///< its lease ended: a holder that did not renew; or it died, and the store sees it
  joined,    ///< somebody waits
  left,      ///< somebody waits no more, and does not hold it
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

/// `since_last` is the time between the two looks. First those that went, then those that came.
std::vector<lock_event> events_between(const name_info& before, const name_info& now,
                                       std::chrono::nanoseconds since_last);

/// What the first look finds.
std::vector<lock_event> events_at_start(const name_info& now);

/// One line: `2024-05-01T12:30:00.250Z granted   web-3 pid 812 (deploy), fence 7`
std::string event_text(const lock_event& e, std::chrono::system_clock::time_point now);

}  // namespace holdfast::tool
