#pragma once

#include <cstddef>
#include <holdfast/result.hpp>
#include <string>
#include <string_view>

/// The maximum length of a record in a database. Records of holdfast have some megabytes at most,
/// and no longer one is ever written. A longer record is not holdfast's, and is not read: it would
/// cost each reader many times its size.
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

/// Stands for such a record in a list of names: a record that cannot be decoded.
inline constexpr const char* unread_record = "\"longer than any record of holdfast\"";

}  // namespace holdfast::store::sql
