#pragma once

#include <holdfast/session.hpp>

#include "c/edge.hpp"

namespace holdfast::c_abi {

struct session_handle final : handle {
  explicit session_handle(session s) : itself(std::move(s)) {}
  session itself;
};

inline session session_of(const void* key) { return get<session_handle>(key, "session")->itself; }

}  // namespace holdfast::c_abi
