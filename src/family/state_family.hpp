#pragma once

#include <holdfast/store/state_store.hpp>
#include <holdfast/store/store.hpp>
#include <memory>

namespace holdfast::family {

/// Connects the kernel with a state store: reads the record, lets the kernel decide and writes the
/// record, in one transaction of the store; then notifies the owners that were granted something.
/// Thread-safe.
std::unique_ptr<store::session_store> over(std::unique_ptr<store::state_store> port);

}  // namespace holdfast::family
