#pragma once

#include <cstddef>
#include <new>

namespace holdfast::base {

/// An empty T, the same for all, that outlives main(): static objects may still use it. Takes no
/// memory, so functions that must not throw may use it as well.
template <class T>
const T& everlasting() noexcept {
  alignas(T) static std::byte place[sizeof(T)];
  static const T* const made = new (place) T;
  return *made;
}

}  // namespace holdfast::base
