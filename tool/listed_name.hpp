#pragma once

#include <array>
#include <chrono>
#include <holdfast/session.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::tool {

/// What list has found out about a name: everything, or why it could not.
struct listed_name {
  name_info info{};
  std::string error{};  ///< not empty: of `info` only the name is known
};

/// One round trip. An entry that cannot be read must not hide the others: its error is its row.
/// Throws holdfast::error where the store does not answer.
listed_name look_at(const session& s, const std::string& name);

/// When the first of them began to hold, or to wait; the end of time if nobody knows, or is there.
std::chrono::system_clock::time_point earliest(const std::vector<participant>& all);

/// What names can be sorted by: of `age`, `waiters` and `wait` the greatest come first, of `lease`
/// the least.
inline constexpr std::array<std::string_view, 6> sort_keys{"name",  "kind",    "age",
                                                           "lease", "waiters", "wait"};
void sort_names(std::vector<listed_name>& names, std::string_view by);

}  // namespace holdfast::tool
