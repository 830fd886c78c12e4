#pragma once

namespace harness {

/// What each test of a program gets, once GoogleTest is initialised: a bound in time, over which
/// the program ends and says which rule it was in (HOLDFAST_TEST_BOUND, in seconds; 60 if it is not
/// set, 0 for none), and, if it fails or the program dies in it, the command that repeats just
/// this.
void watch_each_test();

}  // namespace harness
