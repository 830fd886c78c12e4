#include "family/turns_of_others.hpp"

#include <algorithm>

namespace holdfast::family {

void turns_of_listeners::released(std::string_view name, std::uint32_t others, std::uint64_t heard,
                                  boot_time now) {
  const std::lock_guard guard{mutex_};
  auto* const known = all_.find(name, now);
  if (known == nullptr && others == 0) return;
  standing& s = known != nullptr ? *known : all_.at(name, now);
  s.others = now < s.rests_until ? 0 : others;
  const auto paid = std::min<std::uint64_t>(s.owed, s.others);
  s.owes = s.others - paid;
  s.owed -= paid;
  s.heard = s.last_heard = heard;
  s.free_since = now;
}

// After each release that the session hears of, the others have the pause again.
pause turns_of_listeners::stays_away(std::string_view name, std::uint64_t heard, boot_time now) {
  const std::lock_guard guard{mutex_};
  standing* const s = all_.find(name, now);
  if (s == nullptr || s->owes == 0) return pause{0};
  if (heard < s->heard) s->heard = 0;
  if (heard - s->heard >= s->owes) {
    s->last_heard = heard;
    return pause{0};
  }
  if (heard != s->last_heard) {
    s->last_heard = heard;
    s->free_since = now;
  }
  const auto over_at = s->free_since + s->lasts;
  return now < over_at ? std::chrono::ceil<pause>(over_at - now) : pause{0};
}

bool turns_of_listeners::may_go_on(std::string_view name, boot_time now) {
  const std::lock_guard guard{mutex_};
  const standing* const s = all_.find(name, now);
  return s != nullptr && s->others > 0 && s->owes == 0;
}

bool turns_of_listeners::overdue(std::string_view name, std::uint64_t heard, boot_time now) {
  const std::lock_guard guard{mutex_};
  const standing* const s = all_.find(name, now);
  return s != nullptr && s->others > 0 && heard >= s->heard + s->owes + s->others;
}

// If no program came since this session released, the listeners do not want the lock, or take
// longer.
bool turns_of_listeners::granted(std::string_view name, std::uint64_t heard, boot_time now) {
  const std::lock_guard guard{mutex_};
  standing* const s = all_.find(name, now);
  if (s == nullptr || s->others == 0) return false;
  const std::uint64_t turns = heard < s->heard ? heard : heard - s->heard;
  if (s->owes > 0 && turns == 0 && now >= s->free_since + s->lasts) {
    s->rests_until = now + rest * s->lasts;
    s->lasts = std::min(2 * s->lasts, longest_pause);
    s->others = 0;
  }
  if (turns > s->owes) s->owed += turns - s->owes;
  s->owed = std::min<std::uint64_t>(s->owed, 2 * std::uint64_t{s->others});
  s->owes = 0;
  return s->others > 0;
}

std::int64_t turns_of_pollers::store_time(const standing& s, boot_time now) {
  return s.store_us + std::chrono::duration_cast<pause>(now - s.at).count();
}

void turns_of_pollers::seen(std::string_view name, std::int64_t store_us, boot_time now) {
  const std::lock_guard guard{mutex_};
  standing& s = all_.at(name, now);
  s.store_us = store_us;
  s.at = s.seen_at = now;
}

void turns_of_pollers::granted(std::string_view name, std::int64_t store_us, boot_time now) {
  const std::lock_guard guard{mutex_};
  standing& s = all_.at(name, now);
  const bool began = s.store_us == 0;
  s.store_us = store_us;
  s.at = now;
  if (began) s.seen_at = now - believed;
  if (began || now > s.released_at + at_once) s.takes_since = now;
}

void turns_of_pollers::released(std::string_view name, boot_time now) {
  const std::lock_guard guard{mutex_};
  if (standing* const s = all_.find(name, now)) s->released_at = now;
}

turns_of_pollers::advice turns_of_pollers::stays_away(std::string_view name, boot_time now) {
  const std::lock_guard guard{mutex_};
  standing* const s = all_.find(name, now);
  if (s == nullptr) return {};
  const bool takes_all_of_it = now >= s->takes_since + takes_all && now <= s->released_at + at_once;
  const std::int64_t time = store_time(*s, now);
  const std::int64_t period = time / period_us;
  if (now >= s->seen_at + believed && !takes_all_of_it && s->stays_in != period) return {};
  const std::int64_t left = period_us - time % period_us;
  if (left > theirs_us || (period % tries_every != 0 && period >= s->others_until)) return {};
  s->stays_in = period;
  const std::int64_t before = theirs_us - first_look_us;
  if (left > before) return {pause{left - before}, false};
  return {pause{std::min(left, looks_every_us)}, true};
}

// While a period checks for other programs, no holdfast session asks. In other periods the holder
// may be a session that does not know of other programs yet.
void turns_of_pollers::found_one(std::string_view name, boot_time now) {
  const std::lock_guard guard{mutex_};
  standing* const s = all_.find(name, now);
  if (s == nullptr) return;
  const std::int64_t period = store_time(*s, now) / period_us;
  if (period % tries_every == 0) s->others_until = period + tries_every + 1;
}

}  // namespace holdfast::family
