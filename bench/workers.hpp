#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/shared_state.hpp"
#include "bench/subject.hpp"

namespace bench {

/// The processes that take part in one measurement, as the conductor sees them. A member opens the
/// subject, starts its threads, reports that it is ready, and then obeys commands: count the costs
/// so far, join the threads. Every wait ends with an exception when a member dies or nothing
/// happens for too long.
class workers {
 public:
  /// Starts the members, as processes (this program again) or, if there is one and it need not be a
  /// process, as a thread of this one. Returns when all are ready.
  workers(shared_state_mapping& shared, bool processes);
  workers(const workers&) = delete;
  workers& operator=(const workers&) = delete;

  /// All members write their costs to `before` (or `after`).
  void count(bool after) const;
  /// Waits for the value while watching the members.
  void await(const baton& b, std::uint32_t value) const;
  /// Returns when all threads but those before `first` are in lock() and asleep.
  void await_waiters(unsigned first) const;
  /// Waits for that time while watching the members.
  void let_pass(std::chrono::milliseconds length) const;
  /// The members' threads end, then the members.
  void join() const;

 private:
  struct member {
    member() = default;
    ~member();  ///< ends the member, whatever it does
    member(const member&) = delete;
    member& operator=(const member&) = delete;
    pid_t pid = 0;
    std::thread thread;
    int to = -1, from = -1;
  };

  void start_process(unsigned number);
  void start_thread();
  void tell(char what) const;
  void expect(char answer) const;
  void expect_from(const member& m, char answer) const;
  void check_alive() const;
  [[noreturn]] void member_died() const;

  shared_state_mapping& shared_state_;
  std::vector<member> members_;
};

/// One member's whole life. `commands` and `answers` are file descriptors.
int take_part(shared_state& a, unsigned number, int commands, int answers);

/// The threads of member `number`: from `first` up to `end`.
struct participant_range {
  unsigned first, end;
};
participant_range participants_of(const shared_state& a, unsigned number);

}  // namespace bench
