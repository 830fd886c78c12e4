#pragma once

#include <array>
#include <string_view>

namespace holdfast::store::redis {

/// A file of this folder, put into the library when it is built, and its SHA-1, by which servers
/// call it.
struct script {
  std::string_view text;
  std::string_view sha;
};

script permits_script() noexcept;
script together_script() noexcept;
script countdown_script() noexcept;
script rate_script() noexcept;
inline std::array<script, 4> all_scripts() noexcept {
  return {permits_script(), together_script(), countdown_script(), rate_script()};
}

}  // namespace holdfast::store::redis
