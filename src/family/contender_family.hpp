#pragma once

#include <holdfast/store/contender_store.hpp>
#include <holdfast/store/store.hpp>
#include <memory>

namespace holdfast::family {

/// decide() × contender store: enters the line, looks whose turn it is, watches those that
/// contenders.hpp names. Leases are the session's, cut to what was asked for: a holder counts
/// itself safe only for as long as the store has certainly not ended the session. Thread-safe.
std::unique_ptr<store::session_store> over(std::unique_ptr<store::contender_store> port, clock& on);

}  // namespace holdfast::family
