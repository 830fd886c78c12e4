#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace holdfast::store::sql {

/// True if the record says that its name is unused: the text of family/record_codec.cpp with
/// capacity 0, as in [1,"mutex",0,… The record of an election is never free: it keeps the past
/// leaders for observers. Nor is that of a latch or a limiter, which remembers requests that may be
/// repeated: the state family ends those.
inline bool is_free(std::string_view record) noexcept {
  for (const std::string_view kind : {"election", "latch", "rate_limiter"}) {
    if (record.substr(std::min<std::size_t>(4, record.size())).starts_with(kind)) return false;
  }
  const auto after_kind = record.find("\",");
  return record.empty() || (record.starts_with("[1,\"") && after_kind != record.npos &&
                            record.substr(after_kind).starts_with("\",0,"));
}

/// A lock that is unused and was never used: the state family treats it like a missing record.
inline const std::string* of_nobody() {
  static const auto* const text = new std::string("[1,\"mutex\",0,0,[],[]]");
  return text;
}

/// The record to store when `next` replaces `before`. A row may be removed only together with
/// raising the floor above its version. Otherwise a row that was decided earlier could be created
/// afterwards, and reach the versions that other sessions have seen in this row. The sweep does
/// both.
inline const std::string* stored_instead(const std::string* next, std::string_view before) {
  const bool removes = next != nullptr && next->empty() && !before.empty();
  return removes ? of_nobody() : next;
}

}  // namespace holdfast::store::sql
