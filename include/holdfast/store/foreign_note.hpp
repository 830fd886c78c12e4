#pragma once

#include <holdfast/cpp20.hpp>

#include <string>
#include <string_view>

namespace holdfast::store {

/// The note of a participant that is another program's: "host pid program reason" with nothing in
/// the first three places, and with what the store shows of it as the reason.
inline std::string foreign_note(std::string_view what) {
  return std::string("- 0 - ").append(what);
}

}  // namespace holdfast::store
