#pragma once

#include <holdfast/cpp20.hpp>

#include <string>
#include <system_error>

namespace holdfast {

/// What went wrong, the same on every store. `busy`, `unavailable` and `lost` are never confused.
enum class errc {
  busy = 1,           ///< another holder has the lock (a single try)
  timed_out,          ///< the deadline passed while waiting
  cancelled,          ///< the std::stop_token asked to stop
  lost,               ///< the lock is no longer certain to be held
  not_owner,          ///< the caller does not hold what it releases or extends
  unavailable,        ///< the store cannot be reached, or does not answer
  overloaded,         ///< too many waiters, buckets or queues, or no memory: send less
  deadlock,           ///< waiting would never end (a thread's second lock of its own mutex, or
                      ///< a ring of waits: session_options::detect_deadlocks)
  kind_mismatch,      ///< the name is in use as another kind of primitive
  capacity_mismatch,  ///< the name is in use with another capacity or count
  unsupported,        ///< this store, or this kind of lock, does not offer that
  invalid_name,       ///< empty, too long, control characters, not UTF-8
  invalid_argument,   ///< an impossible duration, weight, count, URL or option
  foreign_data,       ///< the record, table or file was not written by holdfast
  newer_format,       ///< written by a newer holdfast
  corrupt,            ///< damaged data
  read_only,          ///< the store refuses writes
  no_space,           ///< the store is full
  not_permitted,      ///< credentials or rights are missing
  forked,             ///< used in a child process after fork()
  internal,           ///< a defect in holdfast
};

const std::error_category& error_category() noexcept;
std::error_code make_error_code(errc code) noexcept;

/// What functions inside the library return instead of throwing: everything that an `error`
/// consists of.
struct failure {
  errc code = errc::internal;
  std::string what;              ///< what the server or system said, and what to do next
  bool outcome_unknown = false;  ///< the request may or may not have been carried out
  std::string operation{};       ///< what was tried …
  std::string name{};            ///< … on which name …
  std::string store{};           ///< … on which store (never with a password)
  /// The store answers, but could not confirm its grant (`ack=`). So an answer does not yet mean
  /// that the store works again.
  bool ack_missing = false;

  /// The same text as error::what().
  std::string message() const;
};

/// The failure when this process has no memory left: errc::overloaded. It takes no memory itself,
/// because its text fits into the string object.
inline failure without_memory(bool outcome_unknown) noexcept {
  return {errc::overloaded, "no memory", outcome_unknown};
}

/// The one exception of the library. Catch it by this type, and decide by the three questions:
/// retryable(), outcome_unknown(), lease_gone().
class error : public std::system_error {
 public:
  explicit error(failure f);
  const std::string& operation() const noexcept { return failure_.operation; }
  const std::string& name() const noexcept { return failure_.name; }
  const std::string& store() const noexcept { return failure_.store; }
  errc reason() const noexcept { return failure_.code; }

  /// The same call may succeed later.
  bool retryable() const noexcept;
  /// The reply was lost, so the operation may have been carried out. Repeating it is safe, except
  /// that a count_down(), a rate limiter's take, a notification and the very last
  /// barrier::arrive_and_drop() may then count twice (docs/errors.md).
  bool outcome_unknown() const noexcept { return failure_.outcome_unknown; }
  /// The lease this call was about no longer protects anything.
  bool lease_gone() const noexcept;

 private:
  failure failure_;
};

/// Whether a failure of this kind may go away by itself.
bool is_retryable(errc code) noexcept;

/// The one place where a failure becomes an exception.
[[noreturn]] void throw_failure(failure f);

}  // namespace holdfast

template <>
struct std::is_error_code_enum<holdfast::errc> : std::true_type {};
