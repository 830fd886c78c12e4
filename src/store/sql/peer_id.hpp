#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace holdfast::store::sql {

/// 64 random bits from the kernel.
std::uint64_t random_bits() noexcept;

/// Half to the whole of it, so that many who lost the same server do not come back all at once.
std::chrono::nanoseconds jittered(std::chrono::nanoseconds d) noexcept;

/// The address of a session: 16 hexadecimal digits.
std::string random_peer();

}  // namespace holdfast::store::sql
