#pragma once

#include <gtest/gtest.h>

#include <string>

namespace conformance {

/// docs/matrix.md: for each primitive and store how many rules this program runs there, made from
/// the tests that are registered, and what each store promises, made from its capabilities.
std::string matrix();

/// How a store is called at the head of its column.
std::string title(std::string store);

/// What stands in the cell of something that a store can do and that no test runs.
inline constexpr const char* not_run = "**not run**";

}  // namespace conformance
