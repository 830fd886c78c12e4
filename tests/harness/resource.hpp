#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/history.hpp"
#include "harness/shared_memory.hpp"

namespace harness {

/// A protected resource that shows when a lock fails. It is shared by processes. It has a counter
/// that loses increments if two workers are inside, a check of who else is inside, a guard that
/// refuses stale fences, and a history in the order of events at the resource.
class resource {
 public:
  static constexpr std::size_t max_workers = 64;
  static constexpr std::size_t max_events = 200'000;

  explicit resource(const std::string& path) : page_(path) {}

  /// The next tick of the resource's own time.
  std::uint64_t tick() { return page_->ticks.fetch_add(1) + 1; }
  /// The latest tick.
  std::uint64_t now() const { return page_->ticks.load(); }

  /// A visit of one worker (0 to max_workers - 1) that holds the lock: it enters, works, leaves.
  /// `worker` is a number that no other living worker has. The weight is as in history.hpp, out of
  /// `capacity`.
  struct visit {
    std::uint32_t worker = 0;
    std::uint64_t fence = 0;
    std::uint32_t weight = 1;
    std::uint32_t capacity = 1;
    std::uint64_t asked = 0;
  };
  void enter(const visit& v);
  /// An increment in two steps, which others may interrupt. Call it between enter() and leave().
  void work();
  void leave(const visit& v);
  void use(const visit& v) {
    enter(v);
    work();
    leave(v);
  }

  /// A resource's check of a fence: true, and the fence is remembered, if no greater one was seen.
  bool guarded_write(std::uint64_t fence);
  /// Records a visit in this resource's time that was judged elsewhere than in leave().
  void record(const visit& v, std::uint64_t begin, std::uint64_t end);

  struct totals {
    std::uint64_t entries = 0;       ///< how often a worker entered
    std::uint64_t works = 0;         ///< how often a worker finished work()
    std::uint64_t counted = 0;       ///< the value of the counter
    std::uint64_t overlaps = 0;      ///< entered while others were alive inside, above the capacity
    std::uint64_t fence_errors = 0;  ///< entered with a fence that is not greater than the last
    std::uint64_t refused = 0;       ///< guarded writes with a stale fence
  };
  totals count() const;
  /// Finished visits. Those of workers that died inside are missing.
  std::vector<hold_event> history() const;

 private:
  struct place {
    std::atomic<std::uint64_t> inside;  // pid << 32 | weight; 0: nobody
    std::uint64_t begin;
  };
  struct page {
    std::atomic<std::uint64_t> ticks;
    std::uint64_t counter;  // not atomic, on purpose
    std::atomic<std::uint64_t> entries, works, overlaps, fence_errors, refused, greatest_fence;
    std::array<place, max_workers> places;
    std::atomic<std::uint64_t> written;
    std::array<hold_event, max_events> events;
  };

  std::uint64_t weight_of_others(std::uint32_t worker) const;

  shared<page> page_;
};

/// Whether that process can still act; a zombie or a dying process cannot.
bool can_act(pid_t pid);

}  // namespace harness
