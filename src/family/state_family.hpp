#pragma once

#include <holdfast/store/state_store.hpp>
#include <holdfast/store/store.hpp>
#include <memory>

namespace holdfast::family {

/// Kernel × state store: reads the record, lets the kernel decide, writes it back, in one
/// transaction of the store; then tells those who were granted something. Thread-safe.
std::unique_ptr<store::session_store> over(std::unique_ptr<store::state_store> port);

}  // namespace holdfast::family
