#pragma once

namespace harness {

/// How many mutexes the calling thread holds. What a user wrote is called with none: whatever it
/// does then, it waits for nobody. Always 0 where a sanitizer has these functions (TSan), which
/// finds the same by itself when a callback calls back.
int held_mutexes() noexcept;

/// False where it is always 0.
bool counts_held_mutexes() noexcept;

}  // namespace harness
