#pragma once

#include <holdfast/multi_lock.hpp>

#include "engine/acquire_many.hpp"

namespace holdfast {

struct multi_member::state {
  engine::wanted asks;
};

namespace primitive {

/// What is about a gate is not for who does not go through one.
inline std::shared_ptr<const engine::spec> without_gate(const engine::spec& s) {
  auto made = std::make_shared<engine::spec>(s);
  made->gate = nullptr;
  made->linger = {};
  return made;
}

}  // namespace primitive

}  // namespace holdfast
