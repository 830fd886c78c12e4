#include "session/owner_ids.hpp"

#include <sys/random.h>
#include <algorithm>
#include <cerrno>
#include <holdfast/error.hpp>

namespace holdfast::engine {

namespace {

thread_local std::uint64_t jitter_state = 0;

}  // namespace

void owner_ids::refill() {
  // For up to 256 bytes getrandom() neither fails halfway nor is interrupted: 64 words are two
  // calls.
  static_assert(sizeof(random_) == 512);
  for (std::size_t half = 0; half < 2; ++half) {
    while (getrandom(random_.data() + half * 32, 256, 0) != 256) {
      if (errno != EINTR) throw_failure({errc::internal, "the kernel returned no random numbers"});
    }
  }
  used_ = 0;
}

store::owner_id owner_ids::next() {
  const std::lock_guard guard{mutex_};
  if (used_ + 2 > random_.size()) refill();
  const store::owner_id id{random_[used_], random_[used_ + 1]};
  random_[used_] = random_[used_ + 1] = 0;
  used_ += 2;
  return id;
}

void forget_jitter() noexcept { jitter_state = 0; }

std::uint64_t jitter(std::uint64_t below) noexcept {
  if (below == 0) return 0;
  auto& state = jitter_state;
  if (state == 0) (void)!getrandom(&state, sizeof state, GRND_NONBLOCK);
  // xorshift64: good enough to keep waiters from polling all at once.
  state |= 1;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state % below;
}

std::chrono::nanoseconds jittered(std::chrono::nanoseconds d) noexcept {
  const auto quarter = static_cast<std::uint64_t>(std::max<std::int64_t>(d.count() / 4, 0));
  return d - std::chrono::nanoseconds(jitter(quarter));
}

}  // namespace holdfast::engine
