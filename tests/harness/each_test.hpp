#pragma once

namespace harness {

/// Watches each test of a program, once GoogleTest is initialised. A time limit
/// (HOLDFAST_TEST_BOUND, in seconds; 60 if unset, 0 for none) ends the program with the name of the
/// test. If a test fails or crashes, prints the command that repeats just this test.
void watch_each_test();

}  // namespace harness
