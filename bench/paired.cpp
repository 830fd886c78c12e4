#include "bench/paired.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>

namespace bench {
namespace {

using clock = std::chrono::steady_clock;

constexpr unsigned slice = 2000;
constexpr std::size_t least_groups = 6;  // each order once

double us_each(handle& grip) {
  const auto began = clock::now();
  for (unsigned i = 0; i < slice; ++i) {
    grip.lock();
    grip.unlock();
  }
  return std::chrono::duration<double, std::micro>(clock::now() - began).count() / slice;
}

void print(const std::string& name, const std::vector<double>& each, const bounded_median& ratio) {
  std::printf("| %s | %.3f | %.3f (%.3f … %.3f) |\n", name.c_str(), median_with_bounds(each).median,
              ratio.median, ratio.low, ratio.high);
}

}  // namespace

// The bounds are the values 1.96 standard deviations of the binomial distribution from the middle.
// They do not depend on how the values are distributed.
bounded_median median_with_bounds(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto last = static_cast<std::ptrdiff_t>(values.size()) - 1;
  const auto away =
      static_cast<std::ptrdiff_t>(std::ceil(0.98 * std::sqrt(static_cast<double>(values.size()))));
  const auto at = [&](std::ptrdiff_t i) {
    return values[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(i, 0, last))];
  };
  return {at(last / 2 - away), (at(last / 2) + at((last + 1) / 2)) / 2, at((last + 1) / 2 + away)};
}

void measure_paired(const place& at, const subject_kind& plain, const subject_kind& other,
                    std::chrono::milliseconds length) {
  const std::array<std::unique_ptr<subject>, 3> all{plain.open(at), plain.open(at), other.open(at)};
  std::array<std::unique_ptr<handle>, 3> grips;
  for (std::size_t i = 0; i < all.size(); ++i) grips[i] = all[i]->grip(0);
  for (const auto& grip : grips) (void)us_each(*grip);  // not counted: the first is slower

  std::array<std::size_t, 3> order{0, 1, 2};
  std::array<std::vector<double>, 3> each;
  const auto until = clock::now() + length;
  do {  // all orders alike, because a slice may feel what the one before it left
    for (const auto i : order) each[i].push_back(us_each(*grips[i]));
    std::next_permutation(order.begin(), order.end());
  } while (each[0].size() < least_groups || clock::now() < until);

  const auto ratios = [&](std::size_t i) {
    std::vector<double> r;
    for (std::size_t n = 0; n < each[i].size(); ++n) r.push_back(each[i][n] / each[0][n]);
    return median_with_bounds(r);
  };
  const std::string name(plain.name);
  std::printf("| W1, %zu times a slice of %u each | µs | times %s (95 %%) |\n|---|--:|--:|\n",
              each[0].size(), slice, name.c_str());
  print(name, each[0], {1, 1, 1});
  print(name + " again", each[1], ratios(1));
  print(std::string(other.name), each[2], ratios(2));
}

}  // namespace bench
