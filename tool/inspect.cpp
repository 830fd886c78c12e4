#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>

#include "tool/commands.hpp"
#include "tool/died.hpp"
#include "tool/failure.hpp"
#include "tool/json.hpp"
#include "tool/open_store.hpp"
#include "tool/store_url.hpp"
#include "tool/tables.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

using std::chrono::system_clock;

std::string_view kind_of(const lock_choice& c) {
  switch (c.mode) {
    case lock_mode::plain:
      return "mutex";
    case lock_mode::write:
    case lock_mode::read:
      return "shared_mutex";
    case lock_mode::permit:
      return "semaphore";
    case lock_mode::leader:
      return "election";
  }
  return "mutex";
}

/// Whether the store would grant it at once; a reader behind a waiting writer would wait, too.
bool is_free(const name_info& info, const lock_choice& c) {
  if (info.holders.empty() && info.waiters.empty()) return true;
  const bool alone = c.mode == lock_mode::plain || c.mode == lock_mode::write;
  if (alone && info.kind != "semaphore") return false;
  return info.waiters.empty() && info.remaining > 0;
}

/// The command that shows a name that is not a lock.
std::string how_to_ask(const name_info& info) {
  const std::string name = printable(info.name);
  if (info.kind == "latch")
    return "holdfast latch " + name + ' ' + std::to_string(info.capacity) + " --peek";
  if (info.kind == "rate_limiter") return "holdfast limit " + name + " --rate RATE --peek";
  return "holdfast show " + name;
}

/// Throws if the question does not fit the name's kind.
void check_fits(const name_info& info, const lock_choice& c) {
  const bool unasked = c.mode == lock_mode::plain;  // then any kind of lock fits
  constexpr std::array<std::string_view, 4> no_locks{"latch", "rate_limiter", "barrier",
                                                     "condition_variable"};
  const bool no_lock = std::find(no_locks.begin(), no_locks.end(), info.kind) != no_locks.end();
  const bool other_kind = no_lock || (!unasked && info.kind != kind_of(c));
  const bool both_exclusive = c.mode == lock_mode::write && info.kind == "mutex";
  const bool other_size =
      c.mode == lock_mode::permit && info.kind == "semaphore" && info.capacity != c.slots;
  if (info.kind.empty() || both_exclusive || !(other_kind || other_size)) return;
  const std::string_view article = info.kind == "election" ? "an " : "a ";
  std::string used_as = printable(c.name) + " is in use as ";
  used_as.append(article).append(info.kind);
  if (no_lock)
    throw failure_exit(exit_code::config, used_as + ", which is no lock: " + how_to_ask(info));
  if (info.kind != "semaphore")
    throw failure_exit(exit_code::config, used_as + (info.kind == "shared_mutex"
                                                         ? "; ask with -s or -x"
                                                         : "; ask without -s, -x and --slots"));
  const std::string permits = std::to_string(info.capacity);
  throw failure_exit(exit_code::config,
                     used_as + " of " + permits + "; ask with --slots " + permits);
}

/// Independent of --store: a file: URL may name such a store.
bool is_one_file(const session& s) { return scheme_of(s.url()) == "sqlite"; }

}  // namespace

int try_lock(const common_options& common, const try_options& o, log& to) {
  const auto [s, url] = open_to_read(common, to);
  const name_info info = look_at(s, "try", o.lock.name);
  check_fits(info, o.lock);
  const bool free = is_free(without_the_dead(info), o.lock);
  const auto now = system_clock::now();
  print(common.json ? try_json(info, free, now) : try_text(info, free, now));
  return free ? exit_code::ok : o.busy_code;
}

int list(const common_options& common, const list_options& o, log& to) {
  const auto [s, url] = open_to_read(common, to);
  const auto names = look_up(s, o.which);
  const auto now = system_clock::now();
  const bool bold = use_color(common.color, STDOUT_FILENO);
  print(common.json ? list_json(names, url, now) : list_text(names, o.which, now, o.wide, bold));
  return reading_code(names);
}

int show(const common_options& common, const show_options& o, log& to) {
  const auto [s, url] = open_to_read(common, to);
  const name_info info = s.show(o.name);
  const auto buckets = lowest_buckets(s, info);
  const auto now = system_clock::now();
  const bool bold = use_color(common.color, STDOUT_FILENO);
  print(common.json ? show_json(info, buckets, url, s.can(), now)
                    : show_text(info, buckets, url, s.can(), is_one_file(s), now, bold));
  return exit_code::ok;
}

}  // namespace holdfast::tool
