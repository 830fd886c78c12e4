#pragma once

#include "store/mariadb/link.hpp"

namespace holdfast::store::mariadb {

/// Looks whether the tables are there and ours, and makes them if they are not there. What a user
/// without the right to make them has to ask for stands in the error.
status set_up_tables(link& over, const tables& t);

/// For a person with the rights to run it, in one line.
std::string script(const tables& t);

}  // namespace holdfast::store::mariadb
