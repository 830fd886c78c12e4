#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace holdfast::base {

/// 64 random bits from the kernel.
std::uint64_t random_bits() noexcept;

/// The same as 16 hexadecimal digits: the address of a session.
std::string random_id();

/// Half to the whole of it, so that many who lost the same server do not come back all at once.
std::chrono::nanoseconds jittered(std::chrono::nanoseconds d) noexcept;

}  // namespace holdfast::base
