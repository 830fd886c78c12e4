#pragma once

#include <string>

namespace holdfast::tool {

struct default_store {
  std::string url;
  bool first_time = false;  ///< nobody has been told about this file yet
};

/// `sqlite:$XDG_RUNTIME_DIR/holdfast/locks.db`; without that variable the same below /run/user/UID,
/// else in a private folder below /tmp. Makes the folder (0700), and refuses one that others own
/// or can enter. Throws failure_exit.
default_store find_default_store();

}  // namespace holdfast::tool
