#pragma once

#include <source_location>

namespace holdfast {

/// session_options::lock_order: which names a thread takes while it has which others, in the whole
/// process and over all sessions that have it on. Two names that were taken in both orders are
/// reported to the observer once (event_kind::lock_order), when the second order is first seen,
/// whether or not it went wrong: `name` is the one about to be taken, `detail` says where each of
/// them was taken, in both orders. Rings over several names are reported, too. A try without a wait
/// cannot be part of a ring: it counts only as a lock that the thread has. A lease of acquire()
/// counts for the thread that acquired it, an asynchronous one for no thread. The first 10,000
/// pairs of names are remembered. No round trip; off: one branch.
///
/// Where a lock is taken, as those reports name it. The standard's guards do not say who made them,
/// so a line before them does:
///
///     const holdfast::called_from here;
///     const std::lock_guard guard{orders};
///
/// In force for this thread until the end of the scope; the innermost one counts. with_lock() does
/// it by itself. Without one a report says the names, and "somewhere".
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
