#pragma once

#include <cstdint>
#include <random>

/// Reproducible randomness: every seed is printed, and HOLDFAST_SEED overrides it.
namespace harness {

/// The seed of this test program's run; printed when a test uses it for the first time.
std::uint64_t seed();

/// How many of `all` random histories this run plays: HOLDFAST_HISTORIES percent of them, or all.
int histories(int all);

/// A generator with the run's seed; `stream` distinguishes several generators.
class random {
 public:
  explicit random(std::uint64_t stream = 0) : random(seed(), stream) {}
  random(std::uint64_t seed, std::uint64_t stream) : bits_(seed ^ (stream * 0x9e3779b97f4a7c15u)) {}

  /// A number from `low` to `high`, both included.
  template <class Number>
  Number between(Number low, Number high) {
    using wide = std::int64_t;
    return static_cast<Number>(std::uniform_int_distribution<wide>(static_cast<wide>(low),
                                                                   static_cast<wide>(high))(bits_));
  }
  bool one_in(unsigned n) { return between(1u, n) == 1; }
  template <class List>
  auto& pick(List& list) {
    return list[between<std::size_t>(0, std::size(list) - 1)];
  }
  std::uint64_t bits() { return bits_(); }
  std::mt19937_64& generator() { return bits_; }

 private:
  std::mt19937_64 bits_;
};

}  // namespace harness
