#pragma once

#include <mysql.h>

#include <holdfast/clock.hpp>
#include <type_traits>

namespace holdfast::store::mariadb {

/// Calls of the client library that end at a deadline. The library's own limits are whole seconds,
/// and restart with each piece of an answer: with them, a request of several statements could take
/// a multiple of its time at a slow server. So the library never waits itself: it returns what it
/// would wait for. (It does wait itself when connecting, where one limit covers everything.)
class timed_calls {
 public:
  /// `over` must be connected.
  explicit timed_calls(MYSQL* over);

  /// Sets the deadline for the next calls.
  void end_at(boot_time deadline) noexcept {
    deadline_ = deadline;
    late_ = false;
  }
  /// A call ended by the deadline. The connection is broken.
  bool late() const noexcept { return late_; }

  /// Returns the result of the call. `start` begins it, and `go_on` continues it; both return what
  /// they wait for.
  template <class Outcome, class Of, class... Given>
  Outcome operator()(int (*start)(Outcome*, Of*, Given...), int (*go_on)(Outcome*, Of*, int),
                     Of* of, std::type_identity_t<Given>... given) noexcept {
    Outcome made{};
    for (int waits = start(&made, of, given...); waits != 0;) waits = go_on(&made, of, wait(waits));
    return made;
  }

 private:
  int wait(int wanted) noexcept;

  MYSQL* const over_;
  boot_time deadline_ = forever;
  bool late_ = false;
};

}  // namespace holdfast::store::mariadb
