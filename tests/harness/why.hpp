#pragma once

#include <holdfast/result.hpp>

namespace harness {

/// The code of the failure; errc::internal, which no test expects, if there is a value.
template <class T>
holdfast::errc why(const holdfast::result<T>& r) {
  return r ? holdfast::errc::internal : r.error().code;
}

}  // namespace harness
