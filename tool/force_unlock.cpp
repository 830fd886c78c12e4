#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iostream>

#include "tool/commands.hpp"
#include "tool/failure.hpp"
#include "tool/json.hpp"
#include "tool/open_store.hpp"
#include "tool/progress.hpp"
#include "tool/take_away.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

using std::chrono::system_clock;

/// Asks on the terminal, whatever stdout is.
bool agreed(const name_info& info, const std::vector<participant>& from, log& to) {
  std::string question = printable(info.name) + " is held by ";
  for (const participant& p : from)
    question += (&p == from.data() ? "" : ", ") + holder_phrase(p, system_clock::now());
  question += from.size() == 1
                  ? ". That program may still be working, and learns of this only at its next "
                    "renewal; until then only a resource that checks fences refuses its writes."
                  : ". Those programs may still be working, and learn of this only at their next "
                    "renewal; until then only a resource that checks fences refuses their writes.";
  to.write(level::warning, "question", question);
  std::cerr << "Take the lock away? Type yes: " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "yes" || answer == "y";
}

[[noreturn]] void refuse_another_holder(const std::string& name) {
  throw failure_exit(exit_code::declined, "force-unlock: " + printable(name) +
                                              " has another holder by now: nothing was changed");
}

int answer(const common_options& common, const force_unlock_options& o, const std::string& url,
           const taken_away& came) {
  print(common.json
            ? force_unlock_json(o.name, url, came.removed, came.left, o.reason, system_clock::now())
            : in_words(o.name, came, o.reason) + '\n');
  return came.left == 0 ? exit_code::ok : exit_code::declined;
}

}  // namespace

int force_unlock(const common_options& common, const force_unlock_options& o, log& to) {
  const bool asks = !o.yes;
  if (asks && ::isatty(STDIN_FILENO) != 1)
    throw failure_exit(exit_code::usage,
                       "force-unlock: there is no terminal to ask on; give --yes if you mean it");
  const auto [s, url] = open_existing(common, to);
  const name_info info = look_at(s, "force-unlock", o.name);
  refuse_without_holders(info);
  const auto from = targets(info, o.owner);
  if (from.empty() && !o.owner.empty() && !info.holders.empty()) {
    const std::string& id = info.holders.front().short_id;
    throw failure_exit(exit_code::busy, "force-unlock: " + printable(o.name) + " is held, but by " +
                                            (id.empty() ? "another program" : id) + " and not by " +
                                            o.owner);
  }
  if (!asks) return answer(common, o, url, take_away(s, o.name, o.owner, from));
  if (!from.empty() && !agreed(info, from, to)) return exit_code::declined;
  // The lock may have changed hands while the person thought.
  const taken_away came = take_away_only(s, info, from);
  if (came.changed_hands) refuse_another_holder(o.name);
  return answer(common, o, url, came);
}

}  // namespace holdfast::tool
