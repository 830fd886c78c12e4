#pragma once

#include <holdfast/store/contender_store.hpp>

/// What each program may see of a name on a contender store, and take away.
namespace holdfast::family {

/// The holders and the waiters, in order. Only a holder's own session knows how long ago it
/// renewed: it is shown with its whole lease.
result<store::permits_reply> inspect(store::contender_store& port, std::string_view name,
                                     boot_time now);

/// Removes `owner` if it holds, or all holders if none is named.
result<store::permits_reply> evict(store::contender_store& port, std::string_view name,
                                   const store::owner_id& owner);

}  // namespace holdfast::family
