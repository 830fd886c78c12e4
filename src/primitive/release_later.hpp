#pragma once

#include <memory>
#include <utility>

#include "wait/async_forms.hpp"

namespace holdfast::primitive {

/// release() of one lease, or of several that end together, on the thread of the first one's
/// session. Throws errc::not_owner if there is none.
template <class Held>
pending<done> release_later(std::shared_ptr<engine::hold> first, Held held) {
  if (!first)
    throw_failure({errc::not_owner, "this lease is empty: it was released or moved from"});
  // A std::function wants to be copied.
  auto shared = std::make_shared<Held>(std::move(held));
  return engine::async_do(first->session(), [shared, name = first->name()]() -> status {
    const std::error_code why = shared->release();
    if (!why) return done{};
    return failure{static_cast<errc>(why.value()), why.message(), false, "release", name};
  });
}

}  // namespace holdfast::primitive
