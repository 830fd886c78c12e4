#pragma once

#include <memory>
#include <utility>

#include "wait/async_forms.hpp"

namespace holdfast::primitive {

/// What a lease holds. Throws errc::not_owner if that is nothing.
template <class Pointer>
auto& deref(const Pointer& held) {
  if (!held) throw_failure({errc::not_owner, "this lease is empty: it was released or moved from"});
  return *held;
}

/// How a release went, for those that wait for it without a thread.
inline status as_status(std::error_code released, const std::string& name) {
  if (!released) return done{};
  return failure{static_cast<errc>(released.value()), released.message(), false, "release", name};
}

/// release() of one lease, or of several that end together, on the thread of the first one's
/// session. Throws errc::not_owner if there is none.
template <class Held>
pending<done> release_later(std::shared_ptr<engine::hold> first, Held held) {
  auto session = deref(first).session();
  // A std::function wants to be copied.
  auto shared = std::make_shared<Held>(std::move(held));
  return engine::async_do(std::move(session), [shared, name = first->name()]() -> status {
    return as_status(shared->release(), name);
  });
}

}  // namespace holdfast::primitive
