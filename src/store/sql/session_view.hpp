#pragma once

#include <holdfast/store/command.hpp>
#include <span>

#include "store/sql/session_lock_table.hpp"

namespace holdfast::store::sql {

/// What people are shown of a name: who of this session holds it or waits, and who else does by
/// what the server says (its `users`).
permits_reply view_of(std::string_view name, session_lock_table& mine,
                      std::span<const lock_user> users);

}  // namespace holdfast::store::sql
