#pragma once

#include <chrono>
#include <holdfast/error.hpp>

namespace holdfast::engine {

/// Whether a repeated request may succeed soon, so that a wait or the keeper retries: the store did
/// not answer, or there was no memory for this request. A store's refusal for overload has a known
/// outcome, and does not count.
inline bool went_unanswered(const failure& f) noexcept {
  return f.code == errc::unavailable || (f.code == errc::overloaded && f.outcome_unknown);
}

/// How long a thread of a session waits for memory when it cannot go on without.
inline constexpr std::chrono::milliseconds memory_retry{10};

}  // namespace holdfast::engine
