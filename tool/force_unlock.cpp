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
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

using std::chrono::system_clock;

/// Those that the command is about.
std::vector<participant> targets(const name_info& info, const std::string& owner) {
  std::vector<participant> out;
  for (const participant& p : info.holders)
    if (owner.empty() || p.short_id == owner) out.push_back(p);
  return out;
}

/// What nobody holds cannot be taken away from anybody: to say that it was free would mislead.
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

/// On the terminal, whatever stdout is.
bool agreed(const name_info& info, const std::vector<participant>& from, log& to) {
  std::string question = printable(info.name) + " is held by ";
  for (const participant& p : from)
    question += (&p == from.data() ? "" : ", ") + holder_phrase(p, system_clock::now());
  to.write(level::warning, "question",
           question + ". It may still be working: only the fencing token keeps it off then.");
  std::cerr << "Take the lock away? Type yes: " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "yes" || answer == "y";
}

/// What came of it: those who were removed, and those who still hold it though they were asked for.
struct outcome {
  std::size_t removed = 0;
  std::size_t left = 0;
};

std::string holders(std::size_t n) { return std::to_string(n) + (n == 1 ? " holder" : " holders"); }

std::string for_people(const force_unlock_options& o, const outcome& came) {
  const std::string name = printable(o.name);
  const std::string because = o.reason.empty() ? "" : " (" + printable(o.reason) + ")";
  if (came.removed == 0 && came.left == 0) return name + " was not held\n";
  std::string text = name + ":";
  if (came.removed > 0) text += " taken away from " + holders(came.removed);
  if (came.removed > 0 && came.left > 0) text += ";";
  if (came.left > 0)
    text += " held by another program, not taken: this store lets only that program give it back";
  return text + because + '\n';
}

int answer(const common_options& common, const force_unlock_options& o, const std::string& url,
           const outcome& came) {
  print(common.json
            ? force_unlock_json(o.name, url, came.removed, came.left, o.reason, system_clock::now())
            : for_people(o, came));
  return came.left == 0 ? exit_code::ok : exit_code::declined;
}

/// A holder of another program may have no id that the store could find it by.
std::size_t still_held(const session& s, const force_unlock_options& o,
                       const std::vector<participant>& before) {
  const auto now = targets(s.show(o.name), o.owner);
  return static_cast<std::size_t>(std::count_if(now.begin(), now.end(), [&](const participant& p) {
    return std::any_of(before.begin(), before.end(), [&](const participant& b) {
      return b.short_id == p.short_id && b.reason == p.reason && b.fence == p.fence;
    });
  }));
}

}  // namespace

int force_unlock(const common_options& common, const force_unlock_options& o, log& to) {
  const bool asks = !o.yes;
  if (asks && ::isatty(STDIN_FILENO) != 1)
    throw failure_exit(exit_code::usage,
                       "force-unlock: there is no terminal to ask on; give --yes if you mean it");
  const auto [s, url] = open_store(common, to);
  const name_info info = s.show(o.name);
  refuse_without_holders(info);
  const auto from = targets(info, o.owner);
  if (from.empty() && !o.owner.empty() && !info.holders.empty()) {
    const std::string& id = info.holders.front().short_id;
    throw failure_exit(exit_code::busy, "force-unlock: " + printable(o.name) + " is held, but by " +
                                            (id.empty() ? "another program" : id) + " and not by " +
                                            o.owner);
  }
  if (!from.empty() && asks && !agreed(info, from, to)) return exit_code::declined;
  outcome came;
  if (!from.empty()) came.removed = s.force_release(o.name, o.owner);
  if (came.removed < from.size()) came.left = still_held(s, o, from);
  return answer(common, o, url, came);
}

}  // namespace holdfast::tool
