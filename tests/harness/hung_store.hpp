#pragma once

#include <string>

#include "harness/fault_proxy.hpp"

namespace harness {

/// Calls with a time limit to a store that answers nothing, though it takes connections and
/// requests: each one ends by itself, long before the store's own timeout would end it, and leaves
/// nothing behind when the store answers again. `through` leads through the proxy and has a
/// command_timeout (or what the store calls so) beyond the bound of a test; `direct` does not.
void calls_end_at_their_limit_while_it_hangs(fault_proxy& proxy, const std::string& through,
                                             const std::string& direct);

}  // namespace harness
