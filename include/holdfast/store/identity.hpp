#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace holdfast::store {

/// Which server or file it is, so that one that is named in two ways is not taken for two.
struct identity {
  std::string run_id;  ///< another one after each start, where the server has such a thing
  /// How long it has been up; nothing if what it granted outlives its restart.
  std::optional<std::chrono::microseconds> up_for{};
};

}  // namespace holdfast::store
