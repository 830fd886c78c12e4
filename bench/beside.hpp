#pragma once

namespace bench {

/// holdfast in what bench/beside.py compares: a process whose threads want one hot lock. The words:
/// --beside URL NAME THREADS MILLISECONDS, of work in a turn. Says "ready", works from the next
/// line to the one after, and then says how many turns it had and its longest wait in milliseconds,
/// as tests/interop/peers/rival.py does.
int beside_main(char** argv);

}  // namespace bench
