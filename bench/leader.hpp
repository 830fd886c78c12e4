#pragma once

namespace bench {

/// The process that take-over kills: `--leader URL NAME FD`. It leads, writes the time before its
/// request to the file descriptor, and does nothing more.
int leader_main(char** argv);

}  // namespace bench
