#pragma once

#include <holdfast/session.hpp>
#include <string>

namespace holdfast::tool {

/// What list has found out about a name: everything, or why it could not.
struct listed_name {
  name_info info{};
  std::string error{};  ///< not empty: of `info` only the name is known
};

}  // namespace holdfast::tool
