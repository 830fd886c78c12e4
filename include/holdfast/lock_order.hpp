#pragma once

#include <holdfast/cpp20.hpp>

#include <source_location>

namespace holdfast {

/// session_options::lock_order: records which names a thread takes while it holds others, for the
/// whole process and all sessions with the option. If two names are taken in both orders, the
/// observer gets one report (event_kind::lock_order) when the second order is first seen, whether
/// or not threads block each other. `name` is the name about to be taken; `detail` says where each
/// of the two was taken, in both orders. Rings over several names are reported, too. A try that
/// does not wait cannot close a ring: it counts only as a lock that the thread holds. A lease of
/// acquire() counts for the thread that acquired it, an asynchronous one for no thread. After
/// 10,000 pairs of names it records and reports no more. No round trip. While the option is off, it
/// costs one branch.
///
/// The place in the source that these reports name. The standard's guards do not know where they
/// were created, so state it in the line before:
///
///     const holdfast::called_from here;
///     const std::lock_guard guard{orders};
///
/// It applies to this thread until the end of the scope; the innermost object counts. with_lock()
/// states the place by itself. Without a place, a report has the names, and "somewhere".
class called_from {
 public:
  explicit called_from(std::source_location at = std::source_location::current()) noexcept;
  ~called_from();
  called_from(const called_from&) = delete;
  called_from& operator=(const called_from&) = delete;

 private:
  const std::source_location at_;
  const std::source_location* const before_;
};

}  // namespace holdfast
