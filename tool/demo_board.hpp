#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

namespace holdfast::tool::demo {

/// Zeroed memory that this process and the children forked from it share. An all-zero T must be
/// valid, and T must hold no pointers: lock-free atomics and plain numbers.
template <class T>
class shared_array {
 public:
  explicit shared_array(std::size_t n) : bytes_{(n ? n : 1) * sizeof(T)} {
    void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::system_error{errno, std::generic_category(), "mmap"};
    all_ = {static_cast<T*>(at), n};
  }
  ~shared_array() { munmap(all_.data(), bytes_); }
  shared_array(const shared_array&) = delete;
  shared_array& operator=(const shared_array&) = delete;

  T& operator[](std::size_t i) const { return all_[i]; }
  std::size_t size() const { return all_.size(); }

 private:
  std::size_t bytes_;
  std::span<T> all_;
};

/// A worker's present activity; it informs the parent, also about a killed worker.
enum class phase : std::uint8_t {
  idle,
  waiting,  ///< for the lock
  buying,   ///< looking, paying, writing; with a lock: while holding it
};

struct desk {
  std::atomic<phase> now;
  char problem[512];  ///< why the worker gave up, zero-terminated
};

/// The worker of each order, and the outcome. An order is claimed in one step that names the
/// worker, so that the replacement of a killed worker knows which order was left undone.
class board {
 public:
  board(std::size_t orders, std::size_t workers)
      : claims_{orders}, wait_us_{orders}, desks_{workers}, counts_{1} {}

  /// Claims the next open order for this worker; nothing if there is none left.
  std::optional<std::size_t> claim(std::size_t worker);
  /// The order that this worker has claimed and not finished, if any. Scans all orders.
  std::optional<std::size_t> unfinished(std::size_t worker) const;
  void finish(std::size_t order, std::uint32_t wait_us);
  void retried() { ++counts_[0].retries; }

  desk& desk_of(std::size_t worker) const { return desks_[worker]; }
  void give_up(std::size_t worker, std::string_view problem);

  std::size_t orders() const { return claims_.size(); }
  /// For a progress bar: may miss one for each killed worker.
  std::uint32_t finished() const { return counts_[0].finished; }
  /// Exact; scans all orders.
  bool all_finished() const;
  std::chrono::steady_clock::time_point last_finish() const;
  std::uint64_t retries() const { return counts_[0].retries; }
  std::uint32_t wait_us(std::size_t order) const { return wait_us_[order]; }

 private:
  static constexpr std::uint8_t done = 255;
  static std::uint8_t mark(std::size_t worker) { return static_cast<std::uint8_t>(worker + 1); }

  struct counts {
    std::atomic<std::size_t> first_open;  ///< all orders before this one are claimed
    std::atomic<std::uint32_t> finished;
    std::atomic<std::uint64_t> retries;
    std::atomic<std::chrono::steady_clock::rep> last_finish;
  };
  shared_array<std::atomic<std::uint8_t>> claims_;  ///< 0: open; done; or the worker
  shared_array<std::atomic<std::uint32_t>> wait_us_;
  shared_array<desk> desks_;
  shared_array<counts> counts_;
};

inline constexpr unsigned max_workers = 64;

}  // namespace holdfast::tool::demo
