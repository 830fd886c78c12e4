#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace holdfast::base {

/// 64 random bits from the kernel.
std::uint64_t random_bits() noexcept;

/// The same as 16 hexadecimal digits: the address of a session.
std::string random_id();

/// A random time from half of `d` up to `d`, so that many clients that lost the same server do not
/// reconnect all at once.
std::chrono::nanoseconds jittered(std::chrono::nanoseconds d) noexcept;

}  // namespace holdfast::base
