#pragma once

#include <chrono>
#include <holdfast/error.hpp>

namespace holdfast::engine {

/// A request that may go better soon, and that a wait or the keeper tries again: the store did not
/// answer, or there was no memory for this one. What a store refuses as too much has a known
/// outcome.
inline bool went_unanswered(const failure& f) noexcept {
  return f.code == errc::unavailable || (f.code == errc::overloaded && f.outcome_unknown);
}

/// Then there may be memory again: so long a thread of a session waits that cannot go on without.
inline constexpr std::chrono::milliseconds memory_retry{10};

}  // namespace holdfast::engine
