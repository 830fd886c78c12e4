#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulation/judge.hpp"
#include "simulation/world.hpp"

namespace simulation {

/// The order in which the threads of one process get what they pass on to each other: nobody comes
/// before the first waiter more often than lock_options::max_bypass says, and nobody at all before
/// the others. It counts, so it does not matter how late a thread is; and it counts only what is
/// certain: that one waits is known as soon as its thread sleeps.
class local_order {
 public:
  explicit local_order(judge& to) noexcept : judge_(to) {}

  struct request {
    const fiber* who;
    const process* of;
    std::string name;
    unsigned max_bypass;
    nanos until;         ///< it may give up from then on
    bool by_its_thread;  ///< else it is not known when it has joined the queue
  };
  void asks(request r);
  /// Before ends(); it is not told where order is not promised.
  void got(const fiber* who, nanos now);
  void ends(const fiber* who);

 private:
  struct waiter {
    request is;
    std::uint64_t number;
    std::vector<std::uint64_t> behind{};  ///< which certainly waited when this one asked
    std::uint64_t first = 0;              ///< … and was the first of all
    unsigned bypassed = 0;
  };
  static bool is_behind(const waiter& one, const waiter& other) noexcept;
  bool is_first(const waiter& one) const noexcept;
  bool same_queue(const waiter& a, const waiter& b) const noexcept {
    return a.is.of == b.is.of && a.is.name == b.is.name;
  }

  judge& judge_;
  std::vector<waiter> all_;
  std::uint64_t last_number_ = 0;
};

/// Readers of one process that wait together get what the first of them is granted, or something
/// earlier, however late their threads wake: none of them goes behind a writer that came meanwhile.
class shared_grants {
 public:
  explicit shared_grants(judge& to) noexcept : judge_(to) {}

  /// `behind`: a writer of its process is before it.
  void reads(const fiber* who, const process* of, const std::string& name, nanos now, bool behind);
  /// It may be before those that have asked in this moment.
  void writes(const process* of, nanos now);
  /// `for_all`: it had no time limit, so what it has it shares.
  void got(const fiber* who, std::uint64_t fence, nanos now, bool for_all);

 private:
  struct reader {
    const fiber* who;
    const process* of;
    std::string name;
    nanos asked;
    bool behind;
    std::uint64_t latest;  ///< the fence that it must have, if not an earlier one
  };
  void told_of(const reader& got, std::uint64_t fence, nanos now);

  judge& judge_;
  std::vector<reader> all_;
};

}  // namespace simulation
