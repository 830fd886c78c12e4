#pragma once

#include <chrono>
#include <holdfast/error.hpp>

namespace holdfast::engine {

/// What is said where there was no memory. It needs none: the text fits into a string as it is.
inline failure without_memory() noexcept { return {errc::unavailable, "no memory", true}; }

/// Then there may be memory again: so long a thread of a session waits that cannot go on without.
inline constexpr std::chrono::milliseconds memory_retry{10};

}  // namespace holdfast::engine
