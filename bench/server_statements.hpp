#pragma once

#include <cstdint>
#include <string>

namespace bench {

/// The number of transactions on PostgreSQL, or statements on MariaDB, that the store's server has
/// carried out for its clients since it began, by its own count. 0 for other stores. Throws if the
/// server does not answer.
std::int64_t server_statements(const std::string& url);

}  // namespace bench
