#pragma once

#include <holdfast/multi_lock.hpp>

#include "wait/acquire_many.hpp"

namespace holdfast {

struct multi_member::state {
  engine::wanted asks;
};

namespace primitive {

/// The configuration without a local queue, for locks that bypass it.
inline std::shared_ptr<const engine::lock_config> without_local_queue(
    const engine::lock_config& s) {
  auto made = std::make_shared<engine::lock_config>(s);
  made->local_queue = nullptr;
  made->linger = {};
  return made;
}

}  // namespace primitive

}  // namespace holdfast
