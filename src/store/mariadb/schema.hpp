#pragma once

#include "store/mariadb/link.hpp"

namespace holdfast::store::mariadb {

/// Checks that the tables exist and are holdfast's, and creates missing ones. The failure of a user
/// without the right to create them includes the script to ask for.
status set_up_tables(link& over, const tables& t);

/// The script that creates the tables, in one line, for a person with the rights to run it.
std::string script(const tables& t);

}  // namespace holdfast::store::mariadb
