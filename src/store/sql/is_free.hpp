#pragma once

#include <algorithm>
#include <string_view>

namespace holdfast::store::sql {

/// Whether a record says that nobody uses its name: the family's text with capacity 0, as in
/// [1,"mutex",0,… An election's is never free: who led is remembered for observers. Nor is that of
/// a latch or a limiter, which remembers what may be repeated: the family ends those.
inline bool is_free(std::string_view record) noexcept {
  for (const std::string_view kind : {"election", "latch", "rate_limiter"}) {
    if (record.substr(std::min<std::size_t>(4, record.size())).starts_with(kind)) return false;
  }
  const auto after_kind = record.find("\",");
  return record.empty() || (record.starts_with("[1,\"") && after_kind != record.npos &&
                            record.substr(after_kind).starts_with("\",0,"));
}

}  // namespace holdfast::store::sql
