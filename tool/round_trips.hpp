#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace holdfast::tool {

/// The measurements of ping; without an answer the times are zero.
struct ping_summary {
  std::size_t asked = 0;
  std::size_t answered = 0;
  std::chrono::nanoseconds least{}, median{}, mean{}, most{};
  std::size_t median_of = 0;  ///< the number of answers, the last ones
};

/// The times of any number of round trips, in bounded memory: least, mean and most cover all of
/// them, the median covers the last ones.
class round_trips {
 public:
  void add(std::chrono::nanoseconds took);
  ping_summary summary(std::size_t asked) const;

  static constexpr std::size_t most_kept = 10'000;

 private:
  std::vector<std::chrono::nanoseconds> last_;  ///< most_kept of them at most, in no order
  std::uint64_t answered_ = 0;
  std::chrono::nanoseconds sum_{}, least_{}, most_{};
};

}  // namespace holdfast::tool
