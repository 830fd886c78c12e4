#pragma once

#include <gtest/gtest.h>

#include <string>

namespace conformance {

/// docs/matrix.md: the number of rules that this program runs for each primitive and store, made
/// from the registered tests, and each store's promises, made from its capabilities.
std::string matrix();

/// The store's name at the head of its column.
std::string title(std::string store);

/// The text of a cell whose store has the capability and for which no test runs.
inline constexpr const char* not_run = "**not run**";

}  // namespace conformance
