#pragma once

#include <algorithm>
#include <string>
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

/// A lock that nobody uses and nobody had: the family makes of it what it makes of no record.
inline const std::string* of_nobody() {
  static const auto* const text = new std::string("[1,\"mutex\",0,0,[],[]]");
  return text;
}

/// What is stored if `next` is to be there instead of `before`. A row is not removed without the
/// floor being raised above its version: else another one that was decided earlier could be made,
/// and come to the versions that others have seen in this one. The sweep does both.
inline const std::string* stored_instead(const std::string* next, std::string_view before) {
  const bool removes = next != nullptr && next->empty() && !before.empty();
  return removes ? of_nobody() : next;
}

}  // namespace holdfast::store::sql
