#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>

#include "bench/histogram.hpp"

namespace bench {

using clock =
    std::chrono::steady_clock;  // CLOCK_MONOTONIC: the same for all processes of a machine

inline std::int64_t now_ns() { return clock::now().time_since_epoch().count(); }

/// A number that threads of several processes wait for. (std::atomic::wait works in one process.)
class baton {
 public:
  std::uint32_t value() const { return value_; }
  void set(std::uint32_t value);
  /// Returns when the value is at least `wanted`; false if it was not within `at_most`.
  bool wait_for(std::uint32_t wanted, std::chrono::milliseconds at_most) const;
  void wait_for(std::uint32_t wanted) const;

 private:
  std::atomic<std::uint32_t> value_;
};

/// The state and the results of one thread.
struct participant {
  std::atomic<std::int32_t> tid;
  std::atomic<bool> trying;  ///< the thread is in lock(), or about to be
  std::uint64_t acquired;
  std::int64_t first_at, last_at;
  histogram wait;  ///< the time until the lock was acquired; the workload defines its beginning
};

/// The costs of one process.
struct spent {
  std::uint64_t store_operations;
  std::int64_t cpu_ns;
  std::int64_t store_cpu_ns;       ///< the server's; counted by the first process
  std::int64_t at;                 ///< when it was counted
  std::int64_t server_statements;  ///< the server's own count, by the first process
};

inline constexpr unsigned max_processes = 8;
inline constexpr unsigned max_participants = 201;

/// The state that the processes of one measurement share. Plain data: all zero is a valid state.
/// Members read their task here, too: `workload`, `subject`, `folder` and `url` are
/// zero-terminated.
struct shared_state {
  char workload[32], subject[32], folder[1024], url[1024];
  unsigned processes;
  unsigned threads;  ///< in total; divided evenly, and the first member takes the rest

  baton go;
  std::atomic<bool> stop;
  baton held;     ///< 1: the holder of a queue workload has it
  baton release;  ///< 1: the holder must release it
  baton all_had_it;
  baton counted;  ///< 1: the last one of a queue may release
  baton turn;     ///< hand-overs so far
  std::atomic<std::uint32_t> had_it;
  std::atomic<std::int64_t> released_at;
  std::int64_t memory_bytes;   ///< of the held leases
  std::int64_t round_trip_ns;  ///< of a query of the store, median
  std::int64_t least_ns;       ///< the time without a store
  std::atomic<std::int64_t> last_at;
  std::uint64_t
      inside[16];  ///< acquisitions of each lock, counted without atomics: the proof that it locks

  spent before[max_processes], after[max_processes];
  char problem[512];
  participant participants[max_participants];
};

/// The shared state in a file, mapped by every process that takes part.
class shared_state_mapping {
 public:
  /// Creates the file if it does not exist.
  explicit shared_state_mapping(std::filesystem::path file);
  ~shared_state_mapping();
  shared_state_mapping(const shared_state_mapping&) = delete;
  shared_state_mapping& operator=(const shared_state_mapping&) = delete;

  shared_state* operator->() const { return shared_state_; }
  shared_state& operator*() const { return *shared_state_; }
  const std::filesystem::path& file() const { return file_; }

 private:
  std::filesystem::path file_;
  shared_state* shared_state_ = nullptr;
};

/// Whether the thread waits in the kernel, now.
bool is_asleep(std::int32_t tid);

}  // namespace bench
