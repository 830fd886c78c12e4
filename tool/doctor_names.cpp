#include "tool/doctor_names.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "tool/died.hpp"
#include "tool/duration.hpp"
#include "tool/progress.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

/// More would be a list, and `list` prints a better one.
constexpr std::size_t most_of_a_kind = 10;

std::string count(std::size_t n, const std::string& of) {
  return std::to_string(n) + ' ' + of + (n == 1 ? "" : "s");
}

finding census(std::span<const listed_name> names) {
  std::size_t holders = 0, waiters = 0;
  for (const auto& n : names) {
    holders += n.info.holders.size();
    waiters += n.info.waiters.size();
  }
  return {severity::ok,
          "names",
          count(names.size(), "name") + ", " + count(holders, "holder") + ", " +
              count(waiters, "waiter"),
          {}};
}

/// The findings of one kind: at most ten, and the number of the others.
class limited {
 public:
  limited(findings& to, std::string topic, std::string more, severity level = severity::warning)
      : to_(to), topic_(std::move(topic)), more_(std::move(more)), level_(level) {}
  void add(std::string message, std::string remedy) {
    if (++seen_ > most_of_a_kind) return;
    to_.push_back({level_, topic_, std::move(message), std::move(remedy)});
  }
  void finish() {
    if (seen_ <= most_of_a_kind) return;
    to_.push_back(
        {level_, topic_, "and " + std::to_string(seen_ - most_of_a_kind) + " more", more_});
  }

 private:
  findings& to_;
  const std::string topic_;
  const std::string more_;
  const severity level_;
  std::size_t seen_ = 0;
};

void judge_unreadable(std::span<const listed_name> names, findings& to) {
  limited all(to, "unreadable", "holdfast list");
  for (const auto& n : names) {
    if (n.error.empty()) continue;
    all.add(printable(n.info.name) + ": " + printable(n.error),
            n.not_permitted ? "give this user the right to read it"
                            : "remove the entry with the store's own client if nobody needs it");
  }
  all.finish();
}

/// To lead, to be notified, or for others to arrive: such a wait may last for days.
bool may_wait_for_long(std::string_view kind) {
  constexpr std::array<std::string_view, 4> kinds{"election", "condition_variable", "latch",
                                                  "barrier"};
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

void judge_waiters(std::span<const listed_name> names, const circumstances& c, findings& to) {
  limited all(to, "stuck", "holdfast list --waiting");
  for (const auto& n : names) {
    if (n.info.waiters.empty() || may_wait_for_long(n.info.kind)) continue;
    const auto& first = n.info.waiters.front();
    if (!is_known(first.since) || c.now - first.since < c.stuck) continue;
    std::string message = printable(n.info.name) + ": the first of " +
                          count(n.info.waiters.size(), "waiter") + " has waited for " +
                          format_duration(c.now - first.since);
    if (!n.info.holders.empty())
      message += "; held by " + holder_phrase(n.info.holders.front(), c.now);
    all.add(std::move(message), "holdfast show " + printable(n.info.name) +
                                    "; stop the holder, or take the lock away with force-unlock");
  }
  all.finish();
}

/// As far as this machine can tell. Where the store sees the death, the next request passes the
/// participant over.
bool has_died_unseen(const participant& p, const circumstances& c) {
  return !p.died && p.pid != 0 && p.host == c.host && !c.is_alive(p.pid);
}

// A container sometimes has the same host name, and other processes.
void judge_leftovers(std::span<const listed_name> names, const circumstances& c, findings& to) {
  limited all(to, "leftover", "holdfast list --held");
  for (const auto& n : names) {
    for (const auto& p : n.info.holders) {
      if (!has_died_unseen(p, c)) continue;
      all.add(printable(n.info.name) + ": process " + std::to_string(p.pid) +
                  " of this machine holds the lock, and is not running (in this container)",
              p.expires_in ? "the lock is free in " + format_duration(*p.expires_in) +
                                 "; force-unlock frees it at once"
                           : "force-unlock frees the lock at once");
    }
  }
  all.finish();
}

void note_the_dead(std::span<const listed_name> names, findings& to) {
  limited all(to, "died", "holdfast list --held", severity::note);
  for (const auto& n : names) {
    const std::string death = death_phrase(n.info);
    if (!death.empty()) all.add(printable(n.info.name) + ": " + death, {});
  }
  all.finish();
}

}  // namespace

findings judge_names(std::span<const listed_name> names, const circumstances& c) {
  findings found{census(names)};
  judge_unreadable(names, found);
  judge_waiters(names, c, found);
  judge_leftovers(names, c, found);
  note_the_dead(names, found);
  return found;
}

}  // namespace holdfast::tool
