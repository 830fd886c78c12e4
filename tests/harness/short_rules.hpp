#pragma once

#include <string>
#include <vector>

namespace harness {

/// The core of the conformance suite, in a fraction of a second, for stores whose servers have
/// unusual settings: one holder at a time, a greater fence for each, a hand-over to a waiter,
/// several names at once, permits, tokens, and notes that stay as they were.
///
/// A session at each of these URLs takes part. They name the same store, and may name different
/// users. Without `all` only what every store has: a mutex.
void expect_short_rules(const std::vector<std::string>& urls, bool all = true);

}  // namespace harness
