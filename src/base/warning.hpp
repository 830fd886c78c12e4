#pragma once

#include <holdfast/observer.hpp>
#include <string_view>
#include <system_error>

namespace holdfast::base {

/// Tells the observer, if there is one. An observer that throws does not disturb what it watches.
inline void warn(observer* to, std::string_view url, std::string_view what,
                 std::error_code code = {}) noexcept {
  if (to == nullptr) return;
  try {
    to->on_event({.kind = event_kind::warning, .store = url, .code = code, .detail = what});
  } catch (...) {
    return;
  }
}

}  // namespace holdfast::base
