#pragma once

namespace harness {

/// Waits until all other threads of this process sleep, and none has run between two looks at them:
/// then nothing goes on by itself but time. A thread that is ready to run but has no processor is
/// not asleep, so this holds on a loaded machine, too. Threads that poll or spin never rest all
/// together; then it returns after a second. Says whether they rest.
bool until_threads_rest();

}  // namespace harness
