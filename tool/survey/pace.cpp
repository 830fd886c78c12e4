#include "tool/survey/pace.hpp"

#include <algorithm>

namespace holdfast::tool {

namespace {

using std::chrono::duration_cast;
using std::chrono::nanoseconds;

constexpr std::chrono::seconds remembered{60};
/// Neighbouring commands are one burst, so that a minute of them stays small.
constexpr std::chrono::milliseconds one_burst{100};

nanoseconds rest_after(nanoseconds work, double share) {
  return duration_cast<nanoseconds>(std::chrono::duration<double, std::nano>(work) / share);
}

}  // namespace

void pace::spent(boot_time from, boot_time to) {
  owe(from, to - from);
  remember(from, to);
}

void pace::owe(boot_time from, nanoseconds work) {
  rested_at_ = std::max(rested_at_, from) + rest_after(work, share_ - lists_take_);
}

void pace::spent_on_list(boot_time from, boot_time to) {
  if (from < list_at_) owe(from, duration_cast<nanoseconds>((list_at_ - from) * lists_take_));
  list_now_ = false;
  const auto pause =
      std::max<nanoseconds>(rest_after(to - from, lasting_ * of_lists), between_lists);
  list_at_ = to + pause;
  lists_take_ = std::chrono::duration<double>(to - from) / pause;
  remember(from, to);
}

void pace::remember(boot_time from, boot_time to) {
  const nanoseconds length = to - from;
  if (!bursts_.empty() && from - bursts_.back().at < one_burst) {
    bursts_.back().length += length;
  } else {
    bursts_.push_back({from, length});
  }
  while (bursts_.front().at + remembered < to) bursts_.pop_front();
}

double pace::used(boot_time now) const {
  nanoseconds sum{};
  for (const burst& b : bursts_)
    if (b.at + remembered >= now) sum += b.length;
  const nanoseconds span = std::clamp<nanoseconds>(now - began_, one_burst, remembered);
  return std::chrono::duration<double>(sum) / std::chrono::duration<double>(span);
}

}  // namespace holdfast::tool
