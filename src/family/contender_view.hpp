#pragma once

#include <holdfast/store/contender_store.hpp>

/// What every program may see of a name on a contender store, and what it may remove.
namespace holdfast::family {

/// Returns the holders and the waiters, in order. Only a holder's own session knows how long ago it
/// renewed, so a holder is shown with its whole lease.
result<store::permits_reply> inspect(store::contender_store& port, std::string_view name,
                                     boot_time now);

/// Removes `owner` if it holds the lock; all holders if `owner` is empty.
result<store::permits_reply> evict(store::contender_store& port, std::string_view name,
                                   const store::owner_id& owner);

}  // namespace holdfast::family
