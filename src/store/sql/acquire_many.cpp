#include <algorithm>
#include <optional>

#include "store/sql/is_free.hpp"
#include "store/sql/record_bound.hpp"
#include "store/sql/row_store.hpp"

// Acquires several names in one transaction.
namespace holdfast::store::sql {

namespace {

/// How many broken connections or thwarted transactions are tolerated.
constexpr int failures_borne = 20;

struct locked_row {
  const state_store::step* step = nullptr;
  row before{};
  const std::string* next = nullptr;  ///< null: not called, or no change

  bool changes() const { return next != nullptr && *next != before.record; }
};

status undone(row_link& link, failure why, boot_time deadline) {
  auto gone = link.unlock({}, 0, deadline);
  return gone ? status(std::move(why)) : std::move(gone);
}

std::vector<std::string_view> in_order(std::span<const state_store::step> steps) {
  std::vector<std::string_view> names;
  names.reserve(steps.size());
  for (const auto& s : steps) names.push_back(s.name);
  std::sort(names.begin(), names.end());
  return names;
}

// A row without a record was created for its lock only. It is removed: otherwise all sessions would
// find the name in use.
std::vector<rewrite> to_write(std::span<const locked_row> all) {
  std::vector<rewrite> wanted;
  wanted.reserve(all.size());
  for (const auto& r : all) {
    if (r.changes()) {
      wanted.push_back({r.step->name, *r.next});
    } else if (r.before.record.empty()) {
      wanted.push_back({r.step->name});
    }
  }
  return wanted;
}

}  // namespace

/// A commit without an answer.
struct row_store::unanswered {
  bool ever = false;  ///< in this call
  /// The records of the last one, in the order of the steps; empty once the steps were decided
  /// again.
  std::vector<std::optional<std::string>> wrote{};

  void sent(std::span<const locked_row> all) {
    ever = true;
    wrote.clear();
    for (const auto& r : all) wrote.push_back(r.changes() ? std::optional(*r.next) : std::nullopt);
  }
  /// True if all of it is in the rows: the commit was carried out. A part may come from other
  /// sessions that wrote the same.
  bool was_done(std::span<const locked_row> all) const {
    bool shown = false;
    for (std::size_t i = 0; i < wrote.size(); ++i) {
      if (wrote[i] && *wrote[i] != all[i].before.record) return false;
      shown = shown || (wrote[i] && all[i].step->change->is_recognizable());
    }
    return shown;
  }
  /// The same once more, for an answer that proves that a standby has it (row_store::found).
  std::vector<rewrite> once_more(std::span<const locked_row> all) const {
    auto wanted = to_write(all);  // removes what lock() has created
    for (std::size_t i = 0; i < wrote.size(); ++i) {
      if (wrote[i]) wanted.push_back({all[i].step->name, *wrote[i]});
    }
    return wanted;
  }
  void decide_again(std::span<const locked_row> all) {
    for (std::size_t i = 0; i < wrote.size(); ++i) {
      if (wrote[i]) all[i].step->change->may_have_been_stored();
    }
    wrote.clear();
  }
};

status row_store::transact_together(std::span<const state_store::step> steps,
                                    const state_store::judge& after) {
  auto how = try_together(steps, after);  // gives the connection back for the sweep
  if (how) sweep_if_many();
  return how;
}

status row_store::try_together(std::span<const state_store::step> steps,
                               const state_store::judge& after) {
  const boot_time deadline = boot_clock::now() + timeout_;
  unanswered before;
  std::optional<failure> first;
  auto link = pool_.borrow(deadline);
  for (int failures = 0;; ++failures) {
    status how = link ? change_together(**link, steps, after, before, deadline)
                      : status(told_after(std::move(link.error()), first));
    if (how) return how;
    bool broke = link && may_do_better(*link, how.error());
    if (how.error().code == errc::timed_out) how = took_too_long(), broke = false;
    if (broke && how.error().code != errc::busy) pool_.drop_idle();
    const bool again = link && (broke || how.error().code == errc::busy) &&
                       failures < failures_borne && boot_clock::now() < deadline;
    if (!again) {
      how.error().outcome_unknown = before.ever;
      return not_busy(std::move(how.error()));
    }
    if (!broke) continue;
    if (!first) first = how.error();
    link = pool_.replace(std::move(*link), deadline);
  }
}

// If the answer to the commit was lost, looks for what the commit wrote. If that is not there any
// more, the steps run again: a step of one owner may be repeated.
status row_store::change_together(row_link& link, std::span<const state_store::step> steps,
                                  const state_store::judge& after, unanswered& commit,
                                  boot_time deadline) {
  using verdict = state_store::verdict;
  const auto names = in_order(steps);
  auto rows = link.lock(names, deadline);
  if (!rows) return std::move(rows.error());
  const auto until_at = time_of(*rows).at(deadline);
  std::vector<locked_row> all(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto at = std::lower_bound(names.begin(), names.end(), steps[i].name) - names.begin();
    all[i] = {&steps[i], std::move((*rows)[static_cast<std::size_t>(at)]), nullptr};
  }
  if (commit.was_done(all)) return link.unlock(commit.once_more(all), until_at, deadline);
  commit.decide_again(all);
  verdict so = verdict::go_on;
  for (std::size_t i = 0; i < steps.size() && so == verdict::go_on; ++i) {
    const row& now = all[i].before;
    if (now.too_long) return undone(link, record_too_long(), deadline);
    const moment at{now.now_at, std::max(now.now_at, now.fence_floor)};
    all[i].next = stored_instead(steps[i].change->apply(now.record, at), now.record);
    if (all[i].changes() && all[i].next->size() > longest_read)
      return undone(link, grown_too_long(steps[i].name), deadline);
    so = after(i);
  }
  const bool nothing = std::none_of(all.begin(), all.end(), [](auto& r) { return r.changes(); });
  if (so == verdict::undo || nothing) return link.unlock({}, 0, deadline);
  if (auto gone = link.unlock(to_write(all), until_at, deadline); !gone) {
    if (!was_refused(link, gone.error())) commit.sent(all);
    return gone;
  }
  for (const auto& r : all) {
    if (!r.changes()) continue;
    const auto version = r.before.version + 1;
    known_.learn(r.step->name, r.before.version, {true, version, *r.next, 0, r.before.fence_floor},
                 link.server_number());
    if (is_free(*r.next)) note_free(r.step->name);
  }
  return done{};
}

}  // namespace holdfast::store::sql
