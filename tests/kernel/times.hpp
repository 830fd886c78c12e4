#pragma once

#include <cstdint>

namespace kernel_test {

// Kernels count microseconds.
constexpr std::int64_t ms = 1'000;
constexpr std::int64_t second = 1'000 * ms;

}  // namespace kernel_test
