#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

/// The counters of the metrics: without a mutex, and without a cache line that two busy threads
/// share.
namespace holdfast::observe {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

inline constexpr std::array<nanoseconds, 16> wait_bounds{
    1ms, 2500us, 5ms, 10ms, 25ms, 50ms, 100ms, 250ms, 500ms, 1s, 2500ms, 5s, 10s, 30s, 60s, 300s};
inline constexpr std::array<nanoseconds, 18> hold_bounds{1ms,   2500us, 5ms,   10ms, 25ms,   50ms,
                                                         100ms, 250ms,  500ms, 1s,   2500ms, 5s,
                                                         10s,   30s,    60s,   300s, 900s,   3600s};
inline constexpr std::array<nanoseconds, 14> operation_bounds{
    100us, 250us, 500us, 1ms, 2500us, 5ms, 10ms, 25ms, 50ms, 100ms, 250ms, 500ms, 1s, 5s};
/// What was left of a lease when it was renewed: normally two thirds of 30 s.
inline constexpr std::array<nanoseconds, 13> margin_bounds{
    50ms, 100ms, 250ms, 500ms, 1s, 2500ms, 5s, 7500ms, 10s, 15s, 20s, 30s, 60s};
/// By how much the thread that watches leases ran late; the keeper reports nothing shorter.
inline constexpr std::array<nanoseconds, 10> pause_bounds{250ms, 500ms, 1s,  2500ms, 5s,
                                                          10s,   15s,   30s, 60s,    300s};

inline void add(std::atomic<std::uint64_t>& to, std::uint64_t n = 1) noexcept {
  to.fetch_add(n, std::memory_order_relaxed);
}

/// The same, if only one thread adds to the counter: takes a third of the time.
inline void add_alone(std::atomic<std::uint64_t>& to, std::uint64_t n) noexcept {
  to.store(to.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

/// A histogram that several threads may add to.
template <const auto& bounds>
class histogram {
 public:
  static constexpr std::size_t buckets = bounds.size() + 1;
  using counts = std::array<std::uint64_t, buckets>;

  void add(nanoseconds d) noexcept {
    d = std::max(d, nanoseconds::zero());
    observe::add(counts_[bucket_of(d)]);
    observe::add(sum_, static_cast<std::uint64_t>(d.count()));
  }
  /// The same, if only one thread adds to the histogram.
  void add_alone(nanoseconds d) noexcept {
    d = std::max(d, nanoseconds::zero());
    observe::add_alone(counts_[bucket_of(d)], 1);
    observe::add_alone(sum_, static_cast<std::uint64_t>(d.count()));
  }
  void add_to(counts& all, nanoseconds& sum) const noexcept {
    for (std::size_t i = 0; i < buckets; ++i) all[i] += counts_[i].load(std::memory_order_relaxed);
    sum += nanoseconds(sum_.load(std::memory_order_relaxed));
  }

 private:
  static std::size_t bucket_of(nanoseconds d) noexcept {
    std::size_t i = 0;
    while (i < bounds.size() && d > bounds[i]) ++i;
    return i;
  }
  std::array<std::atomic<std::uint64_t>, buckets> counts_{};
  std::atomic<std::uint64_t> sum_{0};
};

/// The number of parts of a busy counter. Of the counting threads, the first ones have a part each
/// for themselves, until they end; the others share the last part.
inline constexpr unsigned parts = 8;
inline constexpr unsigned shared_part = parts - 1;
inline constexpr unsigned no_part = parts;
inline constinit thread_local unsigned part_here = no_part;
unsigned find_part() noexcept;
inline unsigned part_of_this_thread() noexcept {
  return part_here != no_part ? part_here : find_part();
}

/// A histogram for many threads that add all the time.
template <const auto& bounds>
class busy_histogram {
 public:
  using counts = typename histogram<bounds>::counts;
  void add(nanoseconds d) noexcept {
    const unsigned mine = part_of_this_thread();
    if (mine != shared_part) return parts_[mine].of.add_alone(d);
    parts_[mine].of.add(d);
  }
  void add_to(counts& all, nanoseconds& sum) const noexcept {
    for (const auto& p : parts_) p.of.add_to(all, sum);
  }

 private:
  struct alignas(64) part {
    histogram<bounds> of;
  };
  std::array<part, parts> parts_{};
};

/// The present counts of a histogram of either kind.
template <class Histogram>
struct reading {
  explicit reading(const Histogram& h) { h.add_to(counts, sum); }
  std::uint64_t total() const noexcept {
    std::uint64_t n = 0;
    for (const auto c : counts) n += c;
    return n;
  }
  typename Histogram::counts counts{};
  nanoseconds sum{};
};

}  // namespace holdfast::observe
