#pragma once

namespace bench {

/// The process that take-over kills: `--leader URL NAME FD`. Leads, says so to the file descriptor
/// with the time before it asked, and does nothing more.
int leader_main(char** argv);

}  // namespace bench
