#pragma once

namespace bench {

/// holdfast's part in the comparison of bench/beside.py: a process whose threads want one hot lock.
/// Arguments: --beside URL NAME THREADS MILLISECONDS, the last one the work in a turn. Prints
/// "ready", works from the next line to the one after, and then prints its number of turns and its
/// longest wait in milliseconds, as tests/interop/peers/rival.py does.
int beside_main(char** argv);

}  // namespace bench
