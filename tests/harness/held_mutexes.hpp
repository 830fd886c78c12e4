#pragma once

namespace harness {

/// The number of mutexes that the calling thread holds. User callbacks must be called with none:
/// then nothing that they do waits for another thread. Always 0 where a sanitizer intercepts these
/// functions (TSan), which finds a callback under a mutex by itself when the callback calls back.
int held_mutexes() noexcept;

/// False where it is always 0.
bool counts_held_mutexes() noexcept;

}  // namespace harness
