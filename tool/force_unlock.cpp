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

int answer(const common_options& common, const force_unlock_options& o, const std::string& url,
           std::size_t removed) {
  const std::string name = printable(o.name);
  const std::string because = o.reason.empty() ? "" : " (" + printable(o.reason) + ")";
  if (common.json)
    print(force_unlock_json(o.name, url, removed, o.reason, system_clock::now()));
  else if (removed == 0)
    print(name + " was not held\n");
  else
    print(name + ": taken away from " + std::to_string(removed) +
          (removed == 1 ? " holder" : " holders") + because + '\n');
  return exit_code::ok;
}

}  // namespace

int force_unlock(const common_options& common, const force_unlock_options& o, log& to) {
  const bool asks = !o.yes;
  if (asks && ::isatty(STDIN_FILENO) != 1)
    throw failure_exit(exit_code::usage,
                       "force-unlock: there is no terminal to ask on; give --yes if you mean it");
  const auto [s, url] = open_store(common, to);
  const name_info info = s.show(o.name);
  const auto from = targets(info, o.owner);
  if (from.empty() && !o.owner.empty() && !info.holders.empty())
    throw failure_exit(exit_code::busy, "force-unlock: " + printable(o.name) + " is held, but by " +
                                            info.holders.front().short_id + " and not by " +
                                            o.owner);
  if (!from.empty() && asks && !agreed(info, from, to)) return exit_code::declined;
  const std::size_t removed = from.empty() ? 0 : s.force_release(o.name, o.owner);
  return answer(common, o, url, removed);
}

}  // namespace holdfast::tool
