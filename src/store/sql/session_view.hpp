#pragma once

#include <holdfast/store/command.hpp>
#include <span>

#include "store/sql/session_lock_table.hpp"

namespace holdfast::store::sql {

/// The view of a name for people: the holders and waiters of this session, and those of others as
/// far as the server knows them (its `users`).
permits_reply view_of(std::string_view name, session_lock_table& mine,
                      std::span<const lock_user> users);

}  // namespace holdfast::store::sql
