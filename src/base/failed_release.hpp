#pragma once

#include <holdfast/result.hpp>
#include <optional>
#include <string>
#include <utility>

namespace holdfast::base {

/// Where the calling thread's release() puts what the store said, if it fails: its std::error_code
/// has no room for that. Null if the caller does not ask.
inline constinit thread_local std::optional<failure>* failed_release = nullptr;

/// Keeps the first failure, if several holds end together.
inline void note_failed_release(const failure& why) noexcept try {
  if (failed_release != nullptr && !*failed_release) *failed_release = why;
} catch (...) {
  failed_release->reset();  // no memory: only the code is known
}

inline failure as_failure(std::error_code released, std::string name) {
  return {static_cast<errc>(released.value()), released.message(), false, "release",
          std::move(name)};
}

/// Calls release() of a lease, or of several, which does not throw; `name` is for the message.
template <class Held>
status release(Held& held, std::string name) {
  std::optional<failure> why;
  auto* const before = std::exchange(failed_release, &why);
  const std::error_code how = held.release();
  failed_release = before;
  if (!how) return done{};
  failure f = as_failure(how, std::move(name));
  if (why && why->code == how) {
    f.what = std::move(why->what);
    f.outcome_unknown = why->outcome_unknown;
  }
  return f;
}

}  // namespace holdfast::base
