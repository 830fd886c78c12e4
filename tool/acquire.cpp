#include "tool/acquire.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <holdfast/election.hpp>
#include <holdfast/fair_mutex.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>
#include <holdfast/timed.hpp>
#include <string_view>

#include "tool/duration.hpp"
#include "tool/failure.hpp"
#include "tool/progress.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

lock_options options_of(const take_options& t) {
  lock_options o;
  o.lease = t.ttl;
  o.reason = t.reason;
  return o;
}

using attempt = std::optional<lease>;

attempt lead(const session& s, const take_options& t, wait_time wait, std::stop_token stop) {
  election e{s, t.lock.name, {.note = t.reason, .priority = t.priority, .lease = t.ttl}};
  auto won = e.campaign_for(wait, std::move(stop));
  if (!won) return std::nullopt;
  return std::move(*won).as_lease();
}

attempt try_as(lock_mode mode, const session& s, const take_options& t, wait_time wait,
               std::stop_token stop) {
  const auto& name = t.lock.name;
  switch (mode) {
    case lock_mode::plain:
      if (t.fair) return fair_mutex{s, name, options_of(t)}.try_acquire_for(wait, stop);
      return mutex{s, name, options_of(t)}.try_acquire_for(wait, stop);
    case lock_mode::write:
      return shared_mutex{s, name, {options_of(t)}}.try_acquire_for(wait, stop);
    case lock_mode::read:
      return shared_mutex{s, name, {options_of(t)}}.try_acquire_shared_for(wait, stop);
    case lock_mode::leader:
      return lead(s, t, wait, std::move(stop));
    case lock_mode::permit:
      return semaphore{s, name, t.lock.slots, options_of(t)}.try_acquire_for(wait, 1, stop);
  }
  return std::nullopt;
}

/// The lock was requested already: the user should not wait long to learn who holds it.
constexpr std::chrono::seconds a_moment{1};

bool is_exclusive(lock_mode m) { return m == lock_mode::plain || m == lock_mode::write; }

/// The exclusive mode of the kind in use; the same mode if there is none.
lock_mode suiting(const session& s, const take_options& t, lock_mode before) {
  const std::string kind = s.show(t.lock.name).kind;
  if (kind == "mutex") return lock_mode::plain;
  if (kind == "shared_mutex") return lock_mode::write;
  return before;
}

[[noreturn]] void explain_mismatch(const session& s, const take_options& t, const error& e) {
  const std::string kind = s.show(t.lock.name).kind;
  if (t.lock.mode == lock_mode::read && kind == "mutex")
    throw failure_exit(exit_code::config,
                       printable(t.lock.name) +
                           " is held as a mutex, not as a read-write lock: run every command for "
                           "this name with -s or -x");
  throw error(e);
}

/// The kind in use may change between the query and the request, but not for ever.
constexpr int most_changes_of_kind = 16;

attempt acquire_suiting(const session& s, const take_options& t, boot_time deadline,
                        const std::stop_token& stop) {
  lock_mode mode = t.lock.mode;
  for (int changes = 0;; ++changes) {
    try {
      return try_as(mode, s, t, time_left(deadline), stop);
    } catch (const error& e) {
      if (e.reason() != errc::kind_mismatch) throw;
      if (!is_exclusive(mode) || changes == most_changes_of_kind) explain_mismatch(s, t, e);
      const lock_mode other = suiting(s, t, mode);
      if (other == mode && changes > 0) explain_mismatch(s, t, e);
      mode = other;
    }
  }
}

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// Whether the surrounding run holds the lock that this one would wait for.
bool waits_for_itself(const opened_store& at, const take_options& t) {
  if (t.wait != no_limit || t.lock.mode == lock_mode::permit) return false;
  // The owner is an id of that run's own: no other store shows it.
  const auto owner = variable("HOLDFAST_OWNER");
  if (owner.empty() || variable("HOLDFAST_LOCK") != t.lock.name) return false;
  const auto holders = at.session.show(t.lock.name).holders;
  return std::any_of(holders.begin(), holders.end(), [&](const participant& p) {
    const bool both_read = t.lock.mode == lock_mode::read && p.weight == 1;
    return p.short_id == owner && !both_read;
  });
}

}  // namespace

std::optional<lease> acquire(const opened_store& at, const take_options& t, boot_time deadline,
                             std::stop_token stop) {
  if (waits_for_itself(at, t))
    throw failure_exit(
        exit_code::config,
        printable(t.lock.name) +
            " is held by the holdfast run that started this command, and that run waits until this "
            "command ends, so this wait would never end: use another name, or give -n or -w");
  return acquire_suiting(at.session, t, deadline, stop);
}

busy_news tell_busy(const session& s, const take_options& t, const log& to, boot_time limit) {
  busy_news news;
  news.text = printable(t.lock.name) +
              (t.wait == one_try ? " is busy" : " was busy for " + format_duration(t.wait));
  const boot_time now = boot_clock::now();
  if (!to.shows_details() || now >= limit) return news;
  const boot_time until = std::min(saturated_add(now, a_moment), limit);
  const detail::call_limit in_time{until};
  try {
    news.text += held_by(s.show(t.lock.name), std::chrono::system_clock::now());
  } catch (const error&) {  // that the lock is busy is true nevertheless
    news.hangs = boot_clock::now() >= until;
  }
  return news;
}

}  // namespace holdfast::tool
