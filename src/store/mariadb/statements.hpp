#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::store::mariadb {

/// The format of the tables.
inline constexpr std::int64_t format_version = 1;

/// The names of the tables, in their database.
struct tables {
  explicit tables(std::string_view database);
  std::string database;
  std::string records;
  std::string meta;
};
/// The identifier in backquotes, so that any name is only a name.
std::string quoted(std::string_view identifier);

/// x'…', bytes that no setting of the server can misread.
std::string hex(std::string_view bytes);

/// The server's clock at the beginning of a statement: microseconds since 1970.
inline constexpr const char* server_clock =
    "timestampdiff(microsecond, '1970-01-01', utc_timestamp(6))";

/// Whether the server is not read_only. A user who may write nevertheless (READ ONLY ADMIN) would
/// go on granting at a former primary. Versions differ: some return a number, others a word.
inline constexpr const char* takes_writes = "cast(@@global.read_only as char) in ('0', 'OFF')";

/// " and …": not after that time of the server; empty without a time.
std::string not_after(std::string_view until);

/// Replaces the row if it has that version, the server takes writes, and it is not too late
/// (not_after). `now` is the assumed time of the server, if any: the row is replaced only if that
/// time is about right. Two accepted assumptions differ by at most 2 ms, the part of a lease's
/// margin (lease_timer.hpp) that is not for the rates of clocks.
std::string update_of(const tables& t, std::string_view record, std::string_view name,
                      std::string_view version, std::string_view now, std::string_view until);

}  // namespace holdfast::store::mariadb
