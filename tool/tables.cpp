#include "tool/tables.hpp"

#include <limits>

#include "tool/died.hpp"
#include "tool/duration.hpp"
#include "tool/progress.hpp"
#include "tool/table.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

using wall_time = std::chrono::system_clock::time_point;

std::string holder_cell(const name_info& info) {
  if (info.holders.empty()) return "-";
  const participant& first = info.holders.front();
  std::string cell = first.host.empty() ? "another program" : printable(first.host);
  if (first.pid != 0) cell += ":" + std::to_string(first.pid);
  if (info.holders.size() > 1) cell += " +" + std::to_string(info.holders.size() - 1);
  return cell;
}

/// "mutex", "semaphore 2/3" (held of all)
std::string kind_cell(const name_info& info) {
  if (info.kind != "semaphore" && info.kind != "latch") return info.kind;
  const auto used = info.capacity - info.remaining;
  return info.kind + " " + std::to_string(used) + "/" + std::to_string(info.capacity);
}

std::string age_cell(const participant& p, wall_time now) {
  return is_known(p.since) ? format_duration(now - p.since) : "";
}

/// How long since the first of them began.
std::string age_cell(const std::vector<participant>& all, wall_time now) {
  const auto since = earliest(all);
  return since == wall_time::max() ? "" : format_duration(now - since);
}

std::string lease_cell(const participant& p) {
  if (p.died) return "died";
  return p.expires_in ? format_duration(*p.expires_in) : "";
}

/// Why the name is held or waited for; for a dead holder, its death.
std::string reason_cell(const name_info& info) {
  if (std::string death = death_phrase(info); !death.empty()) return death;
  const auto& people = info.holders.empty() ? info.waiters : info.holders;
  return people.empty() ? "" : printable(people.front().reason);
}

/// In the place of the kind.
std::string unread_cell(const listed_name& n) {
  return n.not_permitted ? "not permitted" : "unreadable";
}

std::vector<std::string> list_row(const listed_name& n, wall_time now, std::size_t widest) {
  const name_info& info = n.info;
  const std::string name = shortened(printable(info.name), widest);
  if (!n.error.empty()) return {name, unread_cell(n), "", "", "", "", printable(n.error)};
  const bool held = !info.holders.empty();
  return {name,
          kind_cell(info),
          shortened(holder_cell(info), widest),
          held ? age_cell(info.holders.front(), now) : "",
          held ? lease_cell(info.holders.front()) : "",
          info.waiters.empty() ? "" : std::to_string(info.waiters.size()),
          shortened(reason_cell(info), widest)};
}

std::string participants_text(const std::vector<participant>& all, wall_time now, bool holders,
                              bool bold) {
  table t{{"OWNER", "HOST", "PID", "PROGRAM", holders ? "HELD" : "WAITING",
           holders ? "LEASE" : "PLACE", "WEIGHT", holders ? "FENCE" : "", "REASON"}};
  for (const participant& p : all)
    t.add({printable(p.short_id), p.host.empty() ? "another program" : printable(p.host),
           p.pid == 0 ? "" : std::to_string(p.pid), printable(p.program), age_cell(p, now),
           lease_cell(p), std::to_string(p.weight), p.fence == 0 ? "" : std::to_string(p.fence),
           printable(p.reason)});
  return t.text(bold);
}

std::string buckets_text(std::span<const rate_bucket> all, bool bold) {
  if (all.empty()) return {};
  table t{{"RULE", "KEY", "LEFT", "OF", "COMES BACK", "FULL IN", "LAST USED"}};
  for (const rate_bucket& b : all) {
    std::string key;
    for (const auto& part : b.key) key += (key.empty() ? "" : " ") + printable(part);
    if (!b.error.empty()) {
      t.add({printable(b.rule), key, "unreadable", "", printable(b.error), "", ""});
      continue;
    }
    t.add({printable(b.rule), key, std::to_string(b.remaining), std::to_string(b.limit),
           std::to_string(b.tokens) + " each " + format_duration(b.per), format_duration(b.full_in),
           format_duration(b.unchanged_for) + " ago"});
  }
  return "\nbuckets that are not full, the emptiest first\n" + t.text(bold);
}

std::string state_line(const name_info& info) {
  if (info.kind.empty()) return "not in use";
  if (info.kind == "mutex") return "mutex";
  if (info.kind == "latch")
    return "latch, " + std::to_string(info.remaining) + " of " + std::to_string(info.capacity) +
           " to go";
  if (info.kind == "semaphore")
    return "semaphore, " + std::to_string(info.remaining) + " of " + std::to_string(info.capacity) +
           " permits free";
  return info.kind;
}

/// The promises that matter for a name of this kind; all of them for a name that is not in use.
std::string promises(const std::string& kind, const store::capabilities& can, bool one_file) {
  if (kind == "rate_limiter") return {};  // no holder, no fence, and waits that end by themselves
  const bool gates = kind == "latch" || kind == "barrier" || kind == "condition_variable";
  std::string out = "\nwhat this store promises\n";
  const auto add = [&](bool yes, const char* text) {
    out += std::string("  ") + (yes ? "yes  " : "no   ") + text + '\n';
  };
  if (gates) {
    add(can.notifications, "waiters are notified");
    return out;
  }
  add(can.fences, "fences only grow (docs/guarantees.md lists the exceptions)");
  add(can.sees_death, "a holder that died on this machine is noticed before its lease ends");
  add(can.notifications, "waiters are notified of a release");
  add(can.fair, "order of arrival across processes");
  if (one_file)
    out += "       there is no failover: the store is one file\n";
  else
    add(can.survives_failover, "one holder also when the store fails over");
  return out;
}

/// The use for which a name with holders is free.
std::string for_another(const name_info& info) {
  if (info.holders.empty()) return {};
  if (info.kind != "semaphore") return " for another reader";
  return " for another holder (" + std::to_string(info.remaining) + " of " +
         std::to_string(info.capacity) + " permits left)";
}

}  // namespace

std::string try_text(const name_info& info, bool free, wall_time now) {
  std::string line = printable(info.name) + (free ? " is free" : " is busy");
  if (const std::string death = death_phrase(info); free && !death.empty())
    line += " · " + death;
  else
    line += (free ? for_another(info) : "") + held_by(info, now);
  if (!info.waiters.empty()) line += " · " + std::to_string(info.waiters.size()) + " waiting";
  return line + '\n';
}

std::string no_names_text(const name_choice& which, std::string_view text) {
  std::string which_ones;
  const auto add = [&](const std::string& filter) {
    which_ones += (which_ones.empty() ? " " : " and ") + filter;
  };
  if (which.pattern != name_choice{}.pattern)
    add("matches " + (which.pattern.empty() ? "\"\"" : printable(which.pattern)));
  if (which.held) add("is held");
  if (which.waiting) add("has waiters");
  if (!text.empty()) add("mentions " + printable(text));
  return which_ones.empty() ? "no names in use" : "no name in use" + which_ones;
}

std::string list_text(std::span<const listed_name> names, const name_choice& which, wall_time now,
                      bool wide, bool bold) {
  if (names.empty()) return no_names_text(which) + '\n';
  const std::size_t widest = wide ? std::numeric_limits<std::size_t>::max() : 40;
  table t{{"NAME", "KIND", "HOLDER", "HELD", "LEASE", "WAITING", "REASON"}};
  for (const auto& n : names) t.add(list_row(n, now, widest));
  return t.text(bold);
}

std::string top_text(std::span<const listed_name> names, const name_choice& which, wall_time now) {
  if (names.empty()) return no_names_text(which) + '\n';
  table t{{"NAME", "KIND", "HOLDER", "HELD", "LEASE", "WAITING", "OLDEST", "REASON"}};
  for (const auto& n : names) {
    const auto cells = top_cells(n, now);
    t.add({cells.begin(), cells.end()});
  }
  return t.text(false);
}

std::array<std::string, 8> top_cells(const listed_name& n, wall_time now) {
  const name_info& info = n.info;
  const std::string name = printable(info.name);
  if (!n.error.empty()) return {name, unread_cell(n), "", "", "", "", "", printable(n.error)};
  const bool held = !info.holders.empty();
  return {name,
          kind_cell(info),
          holder_cell(info),
          age_cell(info.holders, now),
          held ? lease_cell(info.holders.front()) : "",
          info.waiters.empty() ? "" : std::to_string(info.waiters.size()),
          age_cell(info.waiters, now),
          reason_cell(info)};
}

std::string name_text(const name_info& info, wall_time now, bool bold) {
  std::string out;
  if (info.last_fence != 0) out += "last fence: " + std::to_string(info.last_fence) + '\n';
  if (!info.holders.empty())
    out += "\nholders\n" + participants_text(info.holders, now, true, bold);
  if (const std::string death = death_phrase(info); !death.empty()) out += death + '\n';
  if (!info.waiters.empty())
    out += "\nwaiting, in this order\n" + participants_text(info.waiters, now, false, bold);
  return out;
}

std::string show_text(const name_info& info, std::span<const rate_bucket> buckets,
                      const std::string& store, const store::capabilities& can, bool one_file,
                      wall_time now, bool bold) {
  return printable(info.name) + ": " + state_line(info) + "\nstore: " + printable(store) + '\n' +
         name_text(info, now, bold) + buckets_text(buckets, bold) +
         promises(info.kind, can, one_file);
}

}  // namespace holdfast::tool
