#pragma once

#include <string_view>

namespace holdfast::store::sql {

/// Whether a record says that nobody uses its name: the family's text with capacity or count 0, as
/// in [1,"mutex",0,… An election's is never free: who led is remembered for observers.
inline bool is_free(std::string_view record) noexcept {
  if (record.starts_with("[1,\"election\"")) return false;
  const auto after_kind = record.find("\",");
  return record.empty() || (record.starts_with("[1,\"") && after_kind != record.npos &&
                            record.substr(after_kind).starts_with("\",0,"));
}

}  // namespace holdfast::store::sql
