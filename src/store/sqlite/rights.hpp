#pragma once

#include <holdfast/result.hpp>
#include <string>

/// The rights to the database: several users of one file need the same rights to all that lies
/// beside it.
namespace holdfast::store::sqlite {

/// Fails if this user may not read and write the database, its folder, and what lies beside it. One
/// message names all that is missing. What does not exist yet is not missing.
status check_rights(const std::string& file);

/// Makes the file for the members of a group (a name or a number), with the mode 660, or gives one
/// that is there already to them. The folder has to pass its group on (chmod g+ws), because SQLite
/// makes the files beside the database anew each time.
status give_to_group(const std::string& file, const std::string& group);

}  // namespace holdfast::store::sqlite
