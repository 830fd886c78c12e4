#pragma once

#include <holdfast/cpp20.hpp>

#include <string>
#include <string_view>

namespace holdfast::store {

/// The note of another program's participant: "host pid program reason", with nothing in the first
/// three places, and with the store's description of it as the reason.
inline std::string foreign_note(std::string_view what) {
  return std::string("- 0 - ").append(what);
}

}  // namespace holdfast::store
