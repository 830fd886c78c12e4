#pragma once

#include <holdfast/observer.hpp>
#include <string_view>
#include <system_error>

namespace holdfast::base {

/// Notifies the observer, if there is one. Exceptions of the observer are dropped.
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
