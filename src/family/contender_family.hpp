#pragma once

#include <holdfast/store/contender_store.hpp>
#include <holdfast/store/store.hpp>
#include <memory>

namespace holdfast::family {

/// Connects decide() with a contender store: enters the queue, determines whose turn it is, and
/// watches the nodes that contenders.hpp names. Leases are those of the store's session, limited to
/// what was requested: a holder relies on its lease only for as long as the store has certainly not
/// ended the session. Thread-safe.
std::unique_ptr<store::session_store> over(std::unique_ptr<store::contender_store> port, clock& on);

}  // namespace holdfast::family
