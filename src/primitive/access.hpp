#pragma once

#include <holdfast/timed.hpp>
#include <utility>

namespace holdfast {

/// The friend of the public classes, for the functions that are not members of them, such as
/// async_acquire() (decision 168).
struct detail::access {
  template <class Of>
  static auto& of(Of& it) noexcept {
    return it.state_;
  }
  template <class Made, class From>
  static Made make(From from) {
    return Made(std::move(from));
  }
};

}  // namespace holdfast
