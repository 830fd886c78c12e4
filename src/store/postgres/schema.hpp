#pragma once

#include <holdfast/result.hpp>
#include <string>

#include "store/postgres/wire.hpp"

namespace holdfast::store::postgres {

/// The identifier in quotes, so that any name is only a name.
std::string quoted(std::string_view identifier);

/// The server's clock, as every statement reads it: microseconds since 1970.
inline constexpr const char* server_clock =
    "(extract(epoch from pg_catalog.clock_timestamp()) * 1000000::numeric)::bigint";

/// The same as a floating-point number, wrong by less than a microsecond. The server computes it in
/// a fraction of the time (ADR 162).
inline constexpr const char* rough_clock =
    "(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::float8)";

inline constexpr std::int64_t format_version = 1;

/// Checks that the tables exist and are holdfast's, and creates missing ones. The failure of a user
/// without the right to create them includes the script to ask for.
status set_up_tables(wire& w, const std::string& schema, boot_time deadline);

/// The script that creates the tables, in one line, for a person with the rights to run it.
std::string script(const std::string& schema);

}  // namespace holdfast::store::postgres
