#pragma once

#include <chrono>
#include <holdfast/error.hpp>

namespace holdfast::engine {

/// What is said where there was no memory. It needs none: the text fits into a string as it is.
/// Of one request, which counts as not answered, and is tried again:
inline failure without_memory() noexcept { return {errc::unavailable, "no memory", true}; }
/// Of a whole operation, which ends with it: what the program has to do about it is another thing
/// than where the store is away.
inline failure ended_without_memory() noexcept { return {errc::overloaded, "no memory", true}; }

/// Then there may be memory again: so long a thread of a session waits that cannot go on without.
inline constexpr std::chrono::milliseconds memory_retry{10};

}  // namespace holdfast::engine
