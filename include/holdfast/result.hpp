#pragma once

#include <holdfast/error.hpp>
#include <utility>
#include <variant>

namespace holdfast {

/// A value, or a failure in its place. Functions inside the library return it, so that nothing is
/// thrown between a driver and the public interface. (std::expected is not in C++20, and a type
/// that depends on the language level would change the ABI.)
template <class T>
class [[nodiscard]] result {
 public:
  result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  result(failure f) : state_(std::in_place_index<1>, std::move(f)) {}

  bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  /// Precondition: ok().
  T& operator*() noexcept { return *std::get_if<0>(&state_); }
  const T& operator*() const noexcept { return *std::get_if<0>(&state_); }
  T* operator->() noexcept { return std::get_if<0>(&state_); }
  const T* operator->() const noexcept { return std::get_if<0>(&state_); }

  /// Precondition: !ok().
  failure& error() noexcept { return *std::get_if<1>(&state_); }
  const failure& error() const noexcept { return *std::get_if<1>(&state_); }

  /// The value, or throws holdfast::error.
  T value() && {
    if (!ok()) throw_failure(std::move(error()));
    return std::move(**this);
  }

 private:
  std::variant<T, failure> state_;
};

/// The value of an operation that succeeds without one.
struct done {};
using status = result<done>;

}  // namespace holdfast
