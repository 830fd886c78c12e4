#pragma once

#include <holdfast/store/store.hpp>
#include <memory>

#include "observe/store_series.hpp"

namespace holdfast::observe {

/// Decorates a store: measures the time of each operation, and counts failures.
std::unique_ptr<store::session_store> timing(std::unique_ptr<store::session_store> inner,
                                             std::shared_ptr<store_series> to);

}  // namespace holdfast::observe
