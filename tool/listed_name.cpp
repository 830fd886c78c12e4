#include "tool/listed_name.hpp"

#include <algorithm>
#include <holdfast/error.hpp>
#include <utility>

#include "tool/exit_code.hpp"
#include "tool/serve/url_query.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

using wall_clock = std::chrono::system_clock;

std::chrono::milliseconds lease_left(const listed_name& n) {
  if (n.info.holders.empty()) return std::chrono::milliseconds::max();
  return n.info.holders.front().expires_in.value_or(std::chrono::milliseconds::max());
}

template <class Key>
void sort_by(std::vector<listed_name>& names, Key key) {
  std::stable_sort(names.begin(), names.end(),
                   [&](const listed_name& a, const listed_name& b) { return key(a) < key(b); });
}

}  // namespace

std::vector<rate_bucket> lowest_buckets(const session& s, const name_info& info) {
  return info.kind == "rate_limiter" ? s.buckets(info.name) : std::vector<rate_bucket>{};
}

listed_name look_at(const session& s, const std::string& name, bool closely) {
  listed_name found;
  try {
    found.info = s.show(name);
    if (closely) found.buckets = lowest_buckets(s, found.info);
  } catch (const error& e) {
    if (e.retryable()) throw;
    found.error = unsigned_message(e.what());
    found.not_permitted = e.reason() == errc::not_permitted;
  }
  found.info.name = name;
  return found;
}

int reading_code(std::span<const listed_name> names) {
  const bool may_read_none =
      !names.empty() &&
      std::all_of(names.begin(), names.end(), [](const listed_name& n) { return n.not_permitted; });
  return may_read_none ? exit_code::not_permitted : exit_code::ok;
}

bool is_shown(const listed_name& n, const name_choice& which) {
  if (!n.error.empty()) return true;
  if (n.info.kind.empty()) return false;  // released since the names were read
  return !(which.held && n.info.holders.empty()) && !(which.waiting && n.info.waiters.empty());
}

wall_clock::time_point earliest(const std::vector<participant>& all) {
  auto first = wall_clock::time_point::max();
  for (const participant& p : all)
    if (is_known(p.since)) first = std::min(first, p.since);
  return first;
}

void sort_names(std::vector<listed_name>& names, std::string_view by) {
  sort_by(names, [](const listed_name& n) { return std::string_view(n.info.name); });
  if (by == "kind") sort_by(names, [](const auto& n) { return std::string_view(n.info.kind); });
  if (by == "age") sort_by(names, [](const auto& n) { return earliest(n.info.holders); });
  if (by == "lease") sort_by(names, lease_left);
  if (by == "wait") sort_by(names, [](const auto& n) { return earliest(n.info.waiters); });
  if (by == "waiters")
    sort_by(names, [](const auto& n) { return -static_cast<long>(n.info.waiters.size()); });
}

std::vector<std::string> names_in_use(const session& s, std::string_view pattern) {
  const auto options = s.url().find('?');
  // The library lists those of this session only.
  if (options != std::string::npos && query_value(s.url().substr(options + 1), "mode") == "session")
    throw_failure({.code = errc::unsupported,
                   .what = "with mode=session the server knows only hashes of the names, so they "
                           "cannot be listed; show, try and watch work for a name that you know",
                   .operation = "names",
                   .name = std::string(pattern),
                   .store = s.url()});
  return s.names(pattern);
}

std::vector<listed_name> look_up(const session& s, const name_choice& which) {
  std::vector<listed_name> found;
  for (const auto& name : names_in_use(s, which.pattern)) {
    auto one = look_at(s, name);
    if (is_shown(one, which)) found.push_back(std::move(one));
  }
  sort_names(found, which.sort);
  return found;
}

}  // namespace holdfast::tool
