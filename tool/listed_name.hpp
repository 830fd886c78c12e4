#pragma once

#include <chrono>
#include <holdfast/session.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tool/options.hpp"

namespace holdfast::tool {

/// A name that nobody uses: a query of it shows whether the store answers.
inline constexpr std::string_view of_nobody = "holdfast-ping";

/// What list has found out about a name: everything, or why it could not.
struct listed_name {
  name_info info{};
  std::string error{};                 ///< not empty: of `info` only the name is known
  bool not_permitted = false;          ///< the error is that this user may not read it
  std::vector<rate_bucket> buckets{};  ///< of a rate limit, if requested
  std::chrono::system_clock::time_point looked_at{};  ///< set if the data is not fresh
};

/// The buckets of a rate limit with the smallest part left. session::buckets() documents the cost.
std::vector<rate_bucket> lowest_buckets(const session& s, const name_info& info);

/// One round trip, and the cost of the buckets if `closely` requests them. An unreadable entry must
/// not hide the others: its error becomes its row. Throws holdfast::error where the store does not
/// answer.
listed_name look_at(const session& s, const std::string& name, bool closely = false);

/// The exit code of a command that reads these: not_permitted if there are names and this user may
/// read none of them, otherwise ok.
int reading_code(std::span<const listed_name> names);

/// The filter of --held and --waiting. An unreadable name may be held, and may have waiters; a name
/// that is not in use is not shown.
bool is_shown(const listed_name& n, const name_choice& which);

/// When the first of them began to hold, or to wait; the end of time if that is unknown, or there
/// is none.
std::chrono::system_clock::time_point earliest(const std::vector<participant>& all);

/// Sorts by one of sort_words: `age`, `waiters` and `wait` put the greatest first, `lease` the
/// least.
void sort_names(std::vector<listed_name>& names, std::string_view by);

/// The names in use that match. Throws errc::unsupported where the store cannot list them.
std::vector<std::string> names_in_use(const session& s, std::string_view pattern);

/// The names in use that were requested, sorted. A scan of the store and a round trip for each
/// name.
std::vector<listed_name> look_up(const session& s, const name_choice& which);

}  // namespace holdfast::tool
