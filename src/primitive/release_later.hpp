#pragma once

#include <memory>
#include <utility>

#include "wait/async_forms.hpp"

namespace holdfast::primitive {

/// What a lease points to. Throws errc::not_owner if it is empty.
template <class Pointer>
auto& deref(const Pointer& held) {
  if (!held) throw_failure({errc::not_owner, "this lease is empty: it was released or moved from"});
  return *held;
}

/// release() of one lease, or of several that end together, on the thread of the first lease's
/// session. Throws errc::not_owner if there is none.
template <class Held>
pending<done> release_later(std::shared_ptr<engine::hold> first, Held held) {
  auto session = deref(first).session();
  // std::function requires a copyable object.
  auto shared = std::make_shared<Held>(std::move(held));
  return engine::async_do(std::move(session), [shared] { return release_status(*shared); });
}

}  // namespace holdfast::primitive
