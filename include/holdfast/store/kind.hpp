#pragma once

#include <holdfast/cpp20.hpp>

#include <cstdint>
#include <string_view>

namespace holdfast::store {

/// What a name is used as. A name has one kind at a time (errc::kind_mismatch).
enum class kind : std::uint8_t {
  mutex,
  shared_mutex,
  semaphore,
  latch,
  rate_limiter,
  election,
  barrier,
  condition_variable,
};
/// Held by one owner at a time, which may prove its release to the next (permits_command::secret).
constexpr bool passes_secrets(kind k) noexcept { return k == kind::mutex || k == kind::election; }
std::string_view to_string(kind k) noexcept;
bool parse_kind(std::string_view text, kind& k) noexcept;

}  // namespace holdfast::store
