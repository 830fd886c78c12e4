#pragma once

#include <holdfast/multi_lock.hpp>

#include "engine/acquire_many.hpp"

namespace holdfast {

struct multi_member::state {
  engine::wanted asks;
};

}  // namespace holdfast
