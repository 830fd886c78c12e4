#pragma once

#include <mysql.h>

#include <holdfast/clock.hpp>
#include <type_traits>

namespace holdfast::store::mariadb {

/// Calls of the client library that end at a deadline. The library's own limits are whole seconds,
/// and begin anew with each piece of an answer: with them, a request of several statements lasts a
/// multiple of its time at a slow server. So the library is not let wait: it says for what it would
/// wait. (To connect, it waits itself: there it has one limit for all.)
class timed_calls {
 public:
  /// Over a connection that is there.
  explicit timed_calls(MYSQL* over);

  /// The next calls end then.
  void end_at(boot_time deadline) noexcept {
    deadline_ = deadline;
    late_ = false;
  }
  /// The deadline ended one. The connection is broken.
  bool late() const noexcept { return late_; }

  /// What the call gives. `start` begins it, and `go_on` continues it; both say for what it waits.
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
