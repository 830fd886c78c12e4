#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace holdfast::store::redis {

/// Half to the whole of it, so that many who lost the same server do not come back all at once.
std::chrono::nanoseconds jittered(std::chrono::nanoseconds d) noexcept;

/// 64 random bits from the kernel, as 16 hexadecimal digits.
std::string random_id();

}  // namespace holdfast::store::redis
