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

/// Whose file it is. Changes nothing.
enum class ownership { ours, nobodys };
/// Fails for a file of another program (foreign_data) or of a newer holdfast (newer_format).
result<ownership> whose(connection& db, const std::string& file);

/// Makes the tables and views unless another process did so meanwhile.
status make_tables(connection& db, const std::string& file);

/// Removes the row of a name (?1) if nobody uses it, and returns a fence greater than its last.
extern const char* const remove_free_sql;
/// From now on SQLite reads no record there that is far too long, and writes none (SQLITE_TOOBIG).
void bound_records(connection& db) noexcept;
/// All records but the empty ones, by name; `on_free` is told the names that nobody uses.
result<std::vector<state_store::entry>> entries_of(
    connection& db, const std::string& file,
    const std::function<void(std::string_view name)>& on_free);
/// Those behind that name, in the order of the names; as many as are asked for.
result<std::vector<state_store::entry>> entries_behind(connection& db, const std::string& file,
                                                       std::string_view name, std::size_t most);

/// What comes after a removed row: no new name starts with a smaller fence.
status raise_fence_floor(connection& db, std::int64_t floor);

/// Sets up a file that is ours for this boot of the machine. Store time starts again with each
/// boot; everybody who is written down from an earlier one is dead, and is struck out here.
/// The views also need to know how far the boot clock is behind the wall clock.
status settle_in(connection& db, const std::string& boot_id);

}  // namespace holdfast::store::sqlite
