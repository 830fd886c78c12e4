#pragma once

#include <holdfast/result.hpp>
#include <string>

/// The rights to the database: several users of one file need the same rights to all files beside
/// it.
namespace holdfast::store::sqlite {

/// Fails if this user may not read and write the database, its folder, and the files beside it. One
/// message lists all missing rights. A file that does not exist yet counts as accessible.
status check_rights(const std::string& file);

/// Creates the file for the members of a group (a name or a number), with the mode 660, or gives an
/// existing file to them. The folder has to pass its group on (chmod g+ws), because SQLite creates
/// the files beside the database again each time.
status give_to_group(const std::string& file, const std::string& group);

}  // namespace holdfast::store::sqlite
