#pragma once

#include <holdfast/store/store.hpp>
#include <memory>

#include "observe/store_series.hpp"

namespace holdfast::observe {

/// A store before another that says how long each operation took, and how it failed.
std::unique_ptr<store::session_store> timing(std::unique_ptr<store::session_store> inner,
                                             std::shared_ptr<store_series> to);

}  // namespace holdfast::observe
