#include "tool/take_away.hpp"

#include <algorithm>
#include <set>

#include "tool/exit_code.hpp"
#include "tool/failure.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

/// 0 where the store cannot take the lock away from another program.
std::size_t release(const session& s, const std::string& name, const std::string& owner = {}) try {
  return s.force_release(name, owner);
} catch (const error& e) {
  if (e.reason() != errc::unsupported) throw;
  return 0;
}

/// A holder of another program may have no id by which the store could find it.
std::size_t still_held(const session& s, const std::string& name, const std::string& owner,
                       const std::vector<participant>& before) {
  const auto now = targets(s.show(name), owner);
  return static_cast<std::size_t>(std::count_if(now.begin(), now.end(), [&](const participant& p) {
    return std::any_of(before.begin(), before.end(), [&](const participant& b) {
      return b.short_id == p.short_id && b.reason == p.reason && b.fence == p.fence;
    });
  }));
}

/// Releases by id. A holder without an id can be released only together with all others, so only as
/// long as no other holder has come.
std::size_t release_only(const session& s, const std::string& name,
                         const std::vector<participant>& from) {
  std::set<std::string> ids;
  for (const participant& p : from) ids.insert(p.short_id);
  std::size_t removed = 0;
  if (ids.erase("") > 0 && still_held(s, name, {}, from) == s.show(name).holders.size())
    return release(s, name);
  for (const std::string& id : ids) removed += release(s, name, id);
  return removed;
}

}  // namespace

std::vector<participant> targets(const name_info& info, const std::string& owner) {
  std::vector<participant> out;
  for (const participant& p : info.holders)
    if (owner.empty() || p.short_id == owner) out.push_back(p);
  return out;
}

void refuse_without_holders(const name_info& info) {
  const std::string name = printable(info.name);
  if (info.kind == "rate_limiter")
    throw failure_exit(exit_code::config, "force-unlock: " + name +
                                              " is a rate_limiter, which nobody holds; holdfast "
                                              "limit " +
                                              name + " --rate RATE --reset fills it");
  if (info.kind == "latch")
    throw failure_exit(exit_code::config, "force-unlock: " + name +
                                              " is a latch, which nobody holds; holdfast latch " +
                                              name + ' ' + std::to_string(info.capacity) +
                                              " --remove removes it");
}

taken_away take_away(const session& s, const std::string& name, const std::string& owner,
                     const std::vector<participant>& from) {
  taken_away came;
  if (!from.empty()) came.removed = release(s, name, owner);
  if (came.removed < from.size()) came.left = still_held(s, name, owner, from);
  return came;
}

taken_away take_away_only(const session& s, const name_info& info,
                          const std::vector<participant>& from) {
  // A phase of a barrier breaks as a whole.
  if (info.kind == "barrier" && from.size() == info.holders.size())
    return take_away(s, info.name, {}, from);
  taken_away came;
  if (!from.empty()) came.removed = release_only(s, info.name, from);
  if (came.removed < from.size()) came.left = still_held(s, info.name, {}, from);
  came.changed_hands =
      came.removed == 0 && came.left == 0 && !from.empty() && !s.show(info.name).holders.empty();
  return came;
}

std::string in_words(const std::string& name, const taken_away& came, const std::string& reason) {
  std::string text = printable(name);
  if (came.removed == 0 && came.left == 0) text += " was not held";
  if (came.removed > 0)
    text += ": taken away from " + std::to_string(came.removed) +
            (came.removed == 1 ? " holder" : " holders");
  if (came.left > 0)
    text += std::string(came.removed > 0 ? ";" : ":") +
            " held by another program, not taken: this store lets only that program give it back";
  return reason.empty() ? text : text + " (" + printable(reason) + ")";
}

}  // namespace holdfast::tool
