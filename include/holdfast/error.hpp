#pragma once

#include <string>
#include <system_error>

namespace holdfast {

/// What went wrong, the same on every store. `busy`, `unavailable` and `lost` are never confused.
enum class errc {
  busy = 1,           ///< somebody else holds it (only where a value is asked for: try forms)
  timed_out,          ///< the deadline passed while waiting
  cancelled,          ///< the std::stop_token asked to stop
  lost,               ///< it was held, and is not (or may not be) any more
  not_owner,          ///< released or extended by somebody who does not hold it
  unavailable,        ///< the store cannot be reached, or does not answer
  overloaded,         ///< too many waiters, buckets or queues already: shed
  deadlock,           ///< waiting would never end (a thread's second lock of its own mutex, or
                      ///< a ring of waits: session_options::detect_deadlocks)
  kind_mismatch,      ///< the name is in use as another kind of primitive
  capacity_mismatch,  ///< the name is in use with another capacity or count
  unsupported,        ///< this store cannot do that
  invalid_name,       ///< empty, too long, control characters, not UTF-8
  invalid_argument,   ///< a duration, weight, count, URL or option that cannot be
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

/// What a port or the engine answers instead of throwing: everything an `error` is made of.
struct failure {
  errc code = errc::internal;
  std::string what;              ///< what the server or system said, and what to do next
  bool outcome_unknown = false;  ///< the request may or may not have been carried out
  std::string operation{};       ///< filled in at the edge: what was tried …
  std::string name{};            ///< … on which name …
  std::string store{};           ///< … on which store (never with a password)
  /// The store answers, and could not make sure of what it granted: that it can be reached again
  /// does not mean that it is well again.
  bool ack_missing = false;

  /// The whole message, as error::what() has it.
  std::string message() const;
};

/// The one exception of the library. Catch it by this type; act on the three questions.
class error : public std::system_error {
 public:
  explicit error(failure f);
  const std::string& operation() const noexcept { return failure_.operation; }
  const std::string& name() const noexcept { return failure_.name; }
  const std::string& store() const noexcept { return failure_.store; }
  errc reason() const noexcept { return failure_.code; }

  /// Trying the same call again later may succeed.
  bool retryable() const noexcept;
  /// The operation may have happened: the reply was lost. Repeating it is safe, but for a rate
  /// limiter's take on Redis and the very last barrier::arrive_and_drop() (docs/guarantees.md).
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
