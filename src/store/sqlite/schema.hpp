#pragma once

#include <cstdint>
#include <functional>
#include <holdfast/result.hpp>
#include <holdfast/store/state_store.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "store/sqlite/connection.hpp"

namespace holdfast::store::sqlite {

/// Which program the file belongs to.
enum class ownership { ours, nobodys };
/// Fails for a file of another program (foreign_data) or of a newer holdfast (newer_format).
/// Changes nothing.
result<ownership> whose(connection& db, const std::string& file);

/// Creates the tables and views unless another process has done so meanwhile.
status make_tables(connection& db, const std::string& file);

/// Removes the row of a name (?1) if it is unused, and returns a fence greater than its last.
extern const char* const remove_free_sql;
/// From now on SQLite neither reads nor writes a record that is far too long (SQLITE_TOOBIG).
void bound_records(connection& db) noexcept;
/// All records but the empty ones, by name. Calls `on_free` with each unused name.
result<std::vector<state_store::entry>> entries_of(
    connection& db, const std::string& file,
    const std::function<void(std::string_view name)>& on_free);
/// At most `most` records of the names behind `name`, in the order of the names.
result<std::vector<state_store::entry>> entries_behind(connection& db, const std::string& file,
                                                       std::string_view name, std::size_t most);

/// Stores the floor that remains of removed rows: no new name starts with a smaller fence.
status raise_fence_floor(connection& db, std::int64_t floor);

/// Prepares a holdfast file for this boot of the machine. Store time restarts with each boot: every
/// holder and waiter from an earlier boot is dead and is removed here. The views also need to know
/// how far the boot clock is behind the wall clock.
status settle_in(connection& db, const std::string& boot_id);

}  // namespace holdfast::store::sqlite
