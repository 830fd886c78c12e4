#pragma once

#include <cstdint>
#include <string>

namespace bench {

/// What the store's server has carried out for its clients since it began, by its own count:
/// transactions on PostgreSQL, statements on MariaDB. 0 where nobody asks it. Throws if it does not
/// say.
std::int64_t server_statements(const std::string& url);

}  // namespace bench
