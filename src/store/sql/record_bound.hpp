#pragma once

#include <cstddef>
#include <holdfast/result.hpp>
#include <string>
#include <string_view>

/// How long a record of a database may be. Ours have some megabytes at most, and none that is
/// longer is written. A longer one was not written by holdfast, and is not read: it would cost each
/// reader many times its size.
namespace holdfast::store::sql {

inline constexpr std::size_t longest_read = 16U << 20;  ///< bytes

inline failure record_too_long() {
  return {errc::corrupt,
          "the record of this name is longer than 16 MiB, and holdfast writes no such record: "
          "it was not read; delete the row if nobody needs it"};
}

inline failure grown_too_long(std::string_view name) {
  return {errc::overloaded, "the record of " + std::string{name} +
                                " would be longer than 16 MiB: too many hold it or wait for it"};
}

/// What a list of names has in its place: a record that nobody can read.
inline constexpr const char* unread_record = "\"longer than any record of holdfast\"";

}  // namespace holdfast::store::sql
