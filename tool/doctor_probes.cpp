#include "tool/doctor_probes.hpp"

#include <algorithm>
#include <chrono>
#include <future>
#include <holdfast/async.hpp>
#include <holdfast/latch.hpp>
#include <holdfast/mutex.hpp>
#include <utility>
#include <vector>

#include "tool/duration.hpp"
#include "tool/exit_code.hpp"
#include "tool/listed_name.hpp"
#include "tool/notification_watch.hpp"
#include "tool/progress.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using std::chrono::system_clock;

constexpr int samples = 9;
constexpr auto slow_round_trip = 100ms;
constexpr auto clocks_differ = 5s;
constexpr auto longest_hand_over = 10s;
/// Longer than a subscription usually takes.
constexpr auto queued_for_certain = 250ms;
/// Short, so that a killed doctor leaves nothing behind for long.
constexpr std::chrono::milliseconds lease_of_probes{5'000};

std::string scratch_name() {
  const auto us = who_we_are();
  return "holdfast-doctor:" + us.host + ':' + std::to_string(us.pid);
}

lock_options briefly() { return {.lease = lease_of_probes, .reason = "holdfast doctor"}; }

std::string remedy_for(const error& e) {
  const bool is_file = e.store().starts_with("sqlite:");
  const bool lacks_rights = e.reason() == errc::not_permitted || e.reason() == errc::read_only;
  if (is_file && lacks_rights)
    return "name a file that this user may write; docs/stores/sqlite.md#several-users says how to "
           "give the right";
  switch (e.reason()) {
    case errc::unavailable:
      if (is_file)
        return "correct the path in the URL; docs/stores/sqlite.md lists what else it may be";
      return "start the server; check host, port and firewall; holdfast ping shows when it answers";
    case errc::not_permitted:
      return "give this user the rights in docs/security.md, or check user and password";
    case errc::read_only:
      return "name the primary";
    case errc::no_space:
      return "make room on the server";
    default:
      return "docs/errors.md explains '" + make_error_code(e.reason()).message() + "'";
  }
}

// The two clocks may have been read up to this far apart.
finding judge_clock(system_clock::time_point before, system_clock::time_point theirs,
                    system_clock::time_point after) {
  nanoseconds off{};
  if (theirs < before) off = before - theirs;
  if (theirs > after) off = theirs - after;
  if (off < clocks_differ) {
    const std::string how = off < 1s ? "less than a second" : format_duration(off);
    return {severity::ok, "clock", "this machine and the store differ by " + how, {}};
  }
  return {severity::warning, "clock",
          "the store's clock is " + format_duration(off) +
              (theirs < before ? " behind" : " ahead") +
              ": ages are shown wrongly (no lock depends on it)",
          "set both clocks by NTP"};
}

}  // namespace

finding problem_of(const std::string& topic, const error& e) {
  return {severity::problem, topic, std::string(unsigned_message(e.what())), remedy_for(e),
          exit_code::of(e.reason())};
}

probes::probes(session s, stopwatch watch)
    : session_(std::move(s)), watch_(std::move(watch)), name_(scratch_name()) {}

finding probes::tried(const std::string& what, const std::function<void()>& act) const {
  try {
    act();
    return {severity::ok, "rights", what, {}};
  } catch (const error& e) {
    return problem_of("rights", e);
  }
}

findings probes::names(const circumstances& c) const {
  try {
    return judge_names(look_up(session_, {}), c);
  } catch (const error& e) {
    if (e.reason() != errc::unsupported) throw;
    return {{severity::note, "names",
             "the names cannot be listed: " + std::string(unsigned_message(e.what())),
             "holdfast show NAME shows a name that you know"}};
  }
}

findings probes::round_trip() {
  std::vector<nanoseconds> times;
  for (int i = 0; i < samples; ++i) {
    (void)session_.show(name_);
    if (const auto took = watch_.take()) times.push_back(*took);
  }
  if (times.empty()) return {};
  std::sort(times.begin(), times.end());
  const nanoseconds median = times[times.size() / 2];
  const std::string text = format_short_time(median) + " is the median of " +
                           std::to_string(times.size()) + ", " + format_short_time(times.back()) +
                           " the longest";
  if (median < slow_round_trip) return {{severity::ok, "round trip", text, {}}};
  return {{severity::warning, "round trip", text + ": a lock and its release cost two",
           "bring the store nearer, or keep locks longer: linger, local_time (docs/tuning.md)"}};
}

/// No finding where no right would make it possible: names() says so.
findings probes::listing() const {
  try {
    (void)names_in_use(session_, name_ + "*");
    return {{severity::ok, "rights", "lists names", {}}};
  } catch (const error& e) {
    if (e.reason() == errc::unsupported) return {};
    return {problem_of("rights", e)};
  }
}

findings probes::rights() {
  findings found = listing();
  found.push_back(tried("takes and releases a lock", [&] {
    mutex m{session_, name_, briefly()};
    lease held = m.acquire();
    if (const auto why = held.release()) throw error({errc::lost, why.message(), false, "release"});
  }));
  if (!session_.can().latch) return found;
  found.push_back(tried("counts down a latch", [&] {
    latch l{session_, name_ + ":latch", 1};
    try {
      l.count_down();
    } catch (const error&) {  // the store may have counted
      (void)async_remove(l).future().get();
      throw;
    }
    l.remove();
  }));
  return found;
}

findings probes::clock() {
  mutex m{session_, name_, briefly()};
  const auto before = system_clock::now();
  const lease held = m.acquire();
  const auto after = system_clock::now();
  const auto holders = session_.show(name_).holders;
  if (holders.empty()) return {};
  if (!is_known(holders.front().since)) {
    return {{severity::note,
             "clock",
             "this store does not say when a lock was taken, so the clocks were not compared",
             {}}};
  }
  return {judge_clock(before, holders.front().since, after)};
}

// The time of the hand-over does not show how the waiter learned of it: it may have polled.
findings probes::notifications(const std::function<session(decorator)>& another) {
  if (!session_.can().notifications) {
    return {{severity::note,
             "notifications",
             "this store has none: waiters poll (docs/choosing-a-store.md)",
             {}}};
  }
  const notification_watch watch;
  const session other = another(watch.decorator());
  mutex first{session_, name_, briefly()};
  mutex second{other, name_, briefly()};
  lease held = first.acquire();
  auto got = std::async(std::launch::async, [&] {
    const auto mine = second.try_acquire_for(longest_hand_over);
    return mine ? boot_clock::now() : forever;
  });
  while (!watch.has_waited(queued_for_certain) &&
         got.wait_for(1ms) == std::future_status::timeout) {
  }
  watch.releases();
  const boot_time released = boot_clock::now();
  held = {};
  const boot_time taken = got.get();
  if (taken == forever) {
    return {{severity::problem, "notifications",
             "a waiter did not get a lock that was released; it waited for " +
                 format_short_time(longest_hand_over),
             "look at the load of the server and of this machine, and run doctor again",
             exit_code::unavailable}};
  }
  if (watch.saw_one()) {
    return {{severity::ok,
             "notifications",
             "a waiter got the lock " + format_short_time(taken - released) + " after its release",
             {}}};
  }
  return {{severity::warning, "notifications",
           "a waiter was not notified of the release: it learned of it by polling",
           "docs/stores says for each store how notifications reach a session, and which rights "
           "they need"}};
}

}  // namespace holdfast::tool
