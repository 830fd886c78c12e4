#include "tool/round_trips.hpp"

#include <algorithm>

namespace holdfast::tool {

void round_trips::add(std::chrono::nanoseconds took) {
  least_ = answered_ == 0 ? took : std::min(least_, took);
  most_ = std::max(most_, took);
  sum_ += took;
  if (last_.size() < most_kept)
    last_.push_back(took);
  else
    last_[answered_ % most_kept] = took;
  ++answered_;
}

ping_summary round_trips::summary(std::size_t asked) const {
  ping_summary s;
  s.asked = asked;
  s.answered = answered_;
  if (answered_ == 0) return s;
  auto sorted = last_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  s.least = least_;
  s.median = *middle;
  s.median_of = sorted.size();
  s.mean = sum_ / static_cast<std::int64_t>(answered_);
  s.most = most_;
  return s;
}

}  // namespace holdfast::tool
