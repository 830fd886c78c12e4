#pragma once

#include <holdfast/session.hpp>

#include "c/edge.hpp"

namespace holdfast::c_abi {

using session_handle = handle_of<session>;

inline session session_of(const void* key) { return get<session_handle>(key, "session")->itself; }

}  // namespace holdfast::c_abi
