#pragma once

#include <functional>
#include <holdfast/clock.hpp>
#include <holdfast/observer.hpp>
#include <memory>
#include <string_view>

namespace holdfast {

enum class log_form { logfmt, json };
enum class log_level { info, warning, error };
std::string_view to_string(log_level level) noexcept;

struct event_log_options {
  log_form form = log_form::logfmt;
  /// Also write the frequent events: acquired, released, busy, gave_up, renewed.
  bool routine = false;
  /// How many lines of one kind of event may be written at once, and how many a second on average.
  /// The next line of that kind says how many were left out (`dropped`).
  unsigned burst = 50;
  double per_second = 10;
  /// Called with each line, without its newline, by one thread at a time, which may also write the
  /// lines of other threads. Lines of events that this call itself causes come after it. You must
  /// set it: the library itself prints nothing.
  std::function<void(log_level level, std::string_view line)> write{};
  /// For the rate. Null: the machine's own.
  std::shared_ptr<holdfast::clock> clock{};
};

/// Writes a line for each event that a person may want to read later:
///
///   time=2026-11-23T05:01:02.345Z level=error event=lost lock=order:1000 kind=mutex
///   store=redis://cache:6379/0 fence=7353371937898741760 waited=0.000050 held=4.021013
///   reason="the lock was lost" detail="the lease ended before it was renewed"
///
/// Stores are named without their passwords; control characters are escaped, so that no name can
/// forge a line. Thread-safe; a line locks a mutex (not while it is written), an event without a
/// line does not. No round trips.
class event_log final : public observer {
 public:
  /// Throws errc::invalid_argument without options.write.
  explicit event_log(event_log_options options);
  ~event_log() override;
  void on_event(const event& what) override;

 private:
  struct state;
  const std::unique_ptr<state> state_;
};

/// Whether an event is one of the frequent events of a program that works well; and how serious an
/// event is.
bool is_routine(event_kind kind) noexcept;
log_level level_of(event_kind kind) noexcept;

}  // namespace holdfast
