#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// Six processes of two threads each use a store in normal ways: mutex, fair_mutex, shared_mutex,
/// semaphore and multi_lock, with options that differ from thread to thread. Each section reads a
/// number at a resource, waits, and writes it back greater by one (after Jepsen's etcd lock test).
/// Meanwhile processes are killed and stopped, and the store meets every possible trouble.
namespace fault_test {

/// A trouble of a store, and its end if it lasts.
struct trouble {
  std::string what;
  std::function<void()> begins;
  std::function<void()> ends{};
};

struct storm_at {
  std::string store;
  /// The processes' ways to the store, one after the other; the first is free of troubles.
  std::vector<std::string> urls;
  std::vector<trouble> troubles;
  /// Two holders may believe that they hold the lock: after a failover, or where the store forgot.
  /// Then the fence must keep one of them out.
  bool two_may_believe = false;
  std::chrono::milliseconds lease{1'000};
};

struct scorecard {
  std::string store;
  std::uint64_t seconds = 0;
  std::uint64_t sections = 0;  ///< check() passed at the beginning and at the end
  std::uint64_t faults = 0;
  std::uint64_t believed_overlaps = 0;  ///< of such sections
  std::uint64_t fenced_overlaps = 0;    ///< writes accepted although another worker came in
  std::uint64_t same_fences = 0;        ///< with the same fence
  std::uint64_t lost_updates = 0;
  std::uint64_t shrunken_fences = 0;
  std::uint64_t refused = 0;          ///< by the fence
  std::uint64_t told_lost = 0;        ///< sections that did not pass check() at their end
  std::uint64_t failed = 0;           ///< calls that found the store away
  std::uint64_t longest_idle_ms = 0;  ///< nobody held it although somebody waited
  std::uint64_t told_late = 0;        ///< another worker was in before the holder was notified
  std::uint64_t latest_told_ms = 0;
  std::uint64_t left_behind = 0;     ///< names that are still in use when all workers have gone
  std::vector<std::string> wrong{};  ///< the first violations

  /// Of a table in Markdown.
  static std::string header();
  std::string row() const;
};

/// Runs for HOLDFAST_CHAOS_SECONDS; without that, half of the troubles, once.
scorecard storm(const storm_at& at);

}  // namespace fault_test
