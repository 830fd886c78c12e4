#pragma once

namespace harness {

/// Waits until all other threads of this process sleep, and none has run between two checks: then
/// only time can change anything. A thread that is ready to run but has no processor is not asleep,
/// so this holds on a loaded machine, too. Threads that poll or spin never all rest; the function
/// then returns after a second, in which times count for little when this process did not run.
/// Returns whether they rest.
bool until_threads_rest();

}  // namespace harness
