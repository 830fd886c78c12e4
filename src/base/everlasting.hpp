#pragma once

#include <cstddef>
#include <new>

namespace holdfast::base {

/// An empty T, the same for all, that outlives main(): static objects may still ask for it. It
/// takes no memory, so that functions which must not throw may ask as well.
template <class T>
const T& everlasting() noexcept {
  alignas(T) static std::byte place[sizeof(T)];
  static const T* const made = new (place) T;
  return *made;
}

}  // namespace holdfast::base
