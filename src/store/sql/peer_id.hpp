#pragma once

#include <cstdint>
#include <string>

namespace holdfast::store::sql {

/// 64 random bits from the kernel.
std::uint64_t random_bits() noexcept;

/// The address of a session: 16 hexadecimal digits.
std::string random_peer();

}  // namespace holdfast::store::sql
