#pragma once

#include <cstddef>
#include <holdfast/session.hpp>
#include <string>
#include <vector>

namespace holdfast::tool {

/// The holders that force-unlock concerns: all, or the one with that short id.
std::vector<participant> targets(const name_info& info, const std::string& owner);

/// Throws failure_exit if the name is of a kind that nobody holds: to report it as free would
/// mislead.
void refuse_without_holders(const name_info& info);

/// The outcome: the number of removed holders, and of those that still hold the lock although they
/// were to be removed.
struct taken_away {
  std::size_t removed = 0;
  std::size_t left = 0;
  bool changed_hands = false;  ///< nobody was removed, and others hold it by now
};
/// `from` is the result of targets().
taken_away take_away(const session& s, const std::string& name, const std::string& owner,
                     const std::vector<participant>& from);
/// Only from those holders: one that has come since keeps the lock.
taken_away take_away_only(const session& s, const name_info& info,
                          const std::vector<participant>& from);

/// One line for people.
std::string in_words(const std::string& name, const taken_away& came, const std::string& reason);

}  // namespace holdfast::tool
