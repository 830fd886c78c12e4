#pragma once

#include <chrono>
#include <holdfast/session.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tool/options.hpp"

namespace holdfast::tool {

/// What list has found out about a name: everything, or why it could not.
struct listed_name {
  name_info info{};
  std::string error{};                 ///< not empty: of `info` only the name is known
  bool not_permitted = false;          ///< that is the error: this user may not read it
  std::vector<rate_bucket> buckets{};  ///< of a rate limit, if they were asked for
  std::chrono::system_clock::time_point looked_at{};  ///< if that was not just now
};

/// The buckets of a rate limit with the smallest part left. session::buckets() says what it costs.
std::vector<rate_bucket> lowest_buckets(const session& s, const name_info& info);

/// One round trip, and what the buckets cost where `closely` asks for them. An entry that cannot be
/// read must not hide the others: its error is its row. Throws holdfast::error where the store does
/// not answer.
listed_name look_at(const session& s, const std::string& name, bool closely = false);

/// The exit code of a command that reads these: not_permitted if there are names and this user may
/// read none of them, else ok.
int reading_code(std::span<const listed_name> names);

/// What --held and --waiting leave. One that cannot be read may be held, and may have
/// waiters; one that is not in use is nothing to show.
bool is_shown(const listed_name& n, const name_choice& which);

/// When the first of them began to hold, or to wait; the end of time if nobody knows, or is there.
std::chrono::system_clock::time_point earliest(const std::vector<participant>& all);

/// By one of sort_words: of `age`, `waiters` and `wait` the greatest come first, of `lease` the
/// least.
void sort_names(std::vector<listed_name>& names, std::string_view by);

/// Those in use that are asked for, sorted. A scan of the store and a round trip for each name.
std::vector<listed_name> look_up(const session& s, const name_choice& which);

}  // namespace holdfast::tool
