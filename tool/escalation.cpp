#include "tool/escalation.hpp"

#include <algorithm>
#include <holdfast/options.hpp>

#include "tool/duration.hpp"

namespace holdfast::tool {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

namespace {

boot_time before(boot_time t, nanoseconds d) noexcept { return t == forever ? forever : t - d; }

}  // namespace

escalation::step escalation::due(boot_time now, const lease_view& lease) noexcept {
  if (killed_) return step::none;
  if (told_to_go()) {
    if (now < kill_time(lease)) return step::none;
    killed_ = true;
    return step::kill;
  }
  if (now >= loss_time(lease)) return tell(now, cause::lost);
  if (now >= terms_.max_run_at) return tell(now, cause::max_run);
  return step::none;
}

escalation::step escalation::tell(boot_time now, cause why) noexcept {
  why_ = why;
  told_at_ = now;
  if (why == cause::max_run || terms_.on_lost == on_lost::term) return step::terminate;
  killed_ = true;
  return step::kill;
}

boot_time escalation::next(const lease_view& lease) const noexcept {
  if (killed_) return forever;
  if (told_to_go()) return kill_time(lease);
  return std::min(loss_time(lease), terms_.max_run_at);
}

/// When to act because of the loss of the lock.
boot_time escalation::loss_time(const lease_view& lease) const noexcept {
  if (terms_.on_lost == on_lost::warn) return forever;
  if (lease.lost) return boot_time::min();
  const bool gently = terms_.on_lost == on_lost::term;
  return before(lease.ends, gently ? terms_.slack + terms_.kill_after : terms_.slack);
}

boot_time escalation::kill_time(const lease_view& lease) const noexcept {
  const boot_time patient = saturated_add(told_at_, terms_.kill_after);
  // If another holder has the lock already, no lease end is left to be early for.
  if (lease.lost || terms_.on_lost == on_lost::warn) return patient;
  return std::min(patient, before(lease.ends, terms_.slack));
}

boot_time escalation::backstop(const lease_view& lease) const noexcept {
  if (terms_.on_lost == on_lost::warn) return forever;
  if (lease.lost) return saturated_add(kill_time(lease), terms_.slack);
  return before(lease.ends, terms_.slack / 2);
}

nanoseconds slack_for(nanoseconds lease) noexcept {
  return std::clamp<nanoseconds>(lease / 20, 5ms, 500ms);
}

nanoseconds default_kill_after(nanoseconds lease) noexcept {
  return std::min<nanoseconds>(5s, lease / 3);
}

nanoseconds certain_length(nanoseconds ttl, nanoseconds remaining) noexcept {
  return remaining < ttl - ttl / 3 ? remaining : ttl;
}

nanoseconds grace_of(const run_options& o, nanoseconds lease) noexcept {
  const nanoseconds asked = o.kill_after.value_or(default_kill_after(lease));
  return o.on_lost == on_lost::term ? std::min(asked, lease / 3) : asked;
}

namespace {

/// Rounds up to a value that format_duration prints without loss: a smaller value would not be
/// enough.
nanoseconds rounded_up(nanoseconds d) {
  const nanoseconds unit = d < 1s    ? nanoseconds(1ms)
                           : d < 10s ? nanoseconds(100ms)
                           : d < 1h  ? nanoseconds(1s)
                           : d < 24h ? nanoseconds(1min)
                                     : nanoseconds(1h);
  return (d + unit - 1ns) / unit * unit;
}

std::string longest_kill_after(nanoseconds kill_after, nanoseconds lease) {
  const std::string two_thirds = "(two thirds of the lease are for renewals)";
  std::string why = "--kill-after " + format_duration(kill_after) +
                    " is longer than a third of --ttl " + format_duration(lease) + "; at most " +
                    format_duration(lease / 3) + " fits " + two_thirds;
  if (kill_after > nanoseconds(max_lease) / 3) return why;
  return why + "; or --ttl " + format_duration(rounded_up(kill_after * 3));
}

}  // namespace

std::string impossible_times(const run_options& o, nanoseconds watchdog) {
  const nanoseconds lease = o.take.ttl;
  // Two renewals in a row may fail before we act: that takes two thirds of the lease.
  if (o.on_lost == on_lost::term && o.kill_after && *o.kill_after > lease / 3)
    return longest_kill_after(*o.kill_after, lease);
  // The lease is renewed every third, and we notice that at most a sixth later.
  if (watchdog.count() > 0 && lease / 2 >= watchdog) {
    return "systemd's WatchdogSec is " + format_duration(watchdog) + ", but with --ttl " +
           format_duration(lease) + " a keep-alive comes only every " + format_duration(lease / 2) +
           "; --ttl " + format_duration(watchdog * 3 / 2) + " would do, or a longer WatchdogSec";
  }
  return {};
}

}  // namespace holdfast::tool
