#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulation/judge.hpp"
#include "simulation/world.hpp"

namespace simulation {

/// The order in which the threads of one process get a lock that they hand over to each other. The
/// first waiter is passed at most lock_options::max_bypass times, and the waiters behind it never.
/// The rule counts grants, so late threads do not matter. It counts only certain cases: a thread is
/// known to wait as soon as it sleeps.
class local_order {
 public:
  explicit local_order(judge& to) noexcept : judge_(to) {}

  struct request {
    const fiber* who;
    const process* of;
    std::string name;
    unsigned max_bypass;
    nanos until;         ///< the waiter may give up from then on
    bool by_its_thread;  ///< otherwise it is unknown when the request joined the queue
  };
  void asks(request r);
  /// Call it before ends(). It is not called where no order is promised.
  void got(const fiber* who, nanos now);
  void ends(const fiber* who);

 private:
  struct waiter {
    request is;
    std::uint64_t number;
    std::vector<std::uint64_t> behind{};  ///< certainly queued when this one asked
    std::uint64_t first = 0;              ///< the waiter that was the first of all
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

/// Readers of one process that wait together share the first reader's grant, or an earlier one,
/// however late their threads wake: none of them is queued behind a writer that came meanwhile.
class shared_grants {
 public:
  explicit shared_grants(judge& to) noexcept : judge_(to) {}

  /// `behind`: a writer of its process is queued before it.
  void reads(const fiber* who, const process* of, const std::string& name, nanos now, bool behind);
  /// The writer may be queued before readers that asked at the same moment.
  void writes(const process* of, nanos now);
  /// `for_all`: the request had no time limit, so others may share its grant.
  void got(const fiber* who, std::uint64_t fence, nanos now, bool for_all);

 private:
  struct reader {
    const fiber* who;
    const process* of;
    std::string name;
    nanos asked;
    bool behind;
    std::uint64_t latest;  ///< the highest fence that it may have
  };
  void told_of(const reader& got, std::uint64_t fence, nanos now);

  judge& judge_;
  std::vector<reader> all_;
};

}  // namespace simulation
