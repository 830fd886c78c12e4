#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace bench {

/// Durations in buckets of at most 1.6 % of their value. Plain data: all zero is a valid state, so
/// it can be in memory that processes share. One writer; readers when it is done.
class histogram {
 public:
  void add(std::chrono::nanoseconds d) {
    const auto n = static_cast<std::uint64_t>(std::max<std::int64_t>(d.count(), 0));
    ++counts_[bucket_of(n)];
    ++total_;
    sum_ += n;
  }

  void add(const histogram& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    total_ += other.total_;
    sum_ += other.sum_;
  }

  /// The value below which the part `q` of all lies; 0 if there is none.
  double percentile_us(double q) const {
    auto left = static_cast<std::uint64_t>(q * static_cast<double>(total_));
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i] > left) return middle_of(i) / 1000;
      left -= counts_[i];
    }
    return 0;
  }

  double mean_us() const {
    return total_ ? static_cast<double>(sum_) / static_cast<double>(total_) / 1000 : 0;
  }

  std::uint64_t total() const { return total_; }

 private:
  // 64 equal steps for each power of two; below 64 ns one step a nanosecond.
  static constexpr unsigned bits = 6;
  static constexpr std::uint64_t steps = 1U << bits;

  static std::size_t bucket_of(std::uint64_t n) {
    if (n < steps) return n;
    const unsigned shift = static_cast<unsigned>(std::bit_width(n)) - bits - 1;
    return shift * steps + (n >> shift);
  }

  static double middle_of(std::size_t bucket) {
    if (bucket < 2 * steps) return static_cast<double>(bucket);
    const auto shift = bucket / steps - 1;
    const auto low = (bucket - shift * steps) << shift;
    return static_cast<double>(low) + static_cast<double>((std::uint64_t{1} << shift) - 1) / 2;
  }

  std::array<std::uint32_t, (64 - bits + 1) * steps> counts_;
  std::uint64_t total_;
  std::uint64_t sum_;
};

}  // namespace bench
