#include <algorithm>

#include "store/sql/is_free.hpp"
#include "store/sql/record_bound.hpp"
#include "store/sql/row_store.hpp"

// Several names in one transaction.
namespace holdfast::store::sql {

namespace {

/// Connections that broke, or transactions that others got in the way of.
constexpr int failures_borne = 20;

struct locked_row {
  const state_store::step* step = nullptr;
  row before{};
  const std::string* next = nullptr;  ///< null: not asked, or nothing to change

  bool changes() const { return next != nullptr && *next != before.record; }
};

std::vector<std::string_view> in_order(std::span<const state_store::step> steps) {
  std::vector<std::string_view> names;
  names.reserve(steps.size());
  for (const auto& s : steps) names.push_back(s.name);
  std::sort(names.begin(), names.end());
  return names;
}

// A row without a record was made for its lock only: it goes, or everybody would find it in use.
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

status undone(row_link& link, failure why, boot_time deadline) {
  auto gone = link.unlock({}, 0, deadline);
  return gone ? status(std::move(why)) : std::move(gone);
}

}  // namespace

status row_store::transact_together(std::span<const state_store::step> steps,
                                    const state_store::judge& after) {
  const boot_time deadline = boot_clock::now() + timeout_;
  bool sent = false;
  for (int failures = 0;; ++failures) {
    bool borrowed = false, broke = false;
    status how = [&]() -> status {
      auto link = pool_.borrow(deadline);
      if (!link) return std::move(link.error());
      borrowed = true;
      auto said = change_together(**link, steps, after, sent, deadline);
      broke = !said && may_do_better(*link, said.error());
      return said;
    }();  // and gives the connection back: the sweep may need it
    if (how) return sweep_if_many(), how;
    const bool again = borrowed && (broke || how.error().code == errc::busy) &&
                       failures < failures_borne && boot_clock::now() < deadline;
    if (!again) {
      how.error().outcome_unknown = sent;
      return how;
    }
    if (broke && how.error().code != errc::busy) pool_.drop_idle();
  }
}

// Whose answer to the commit was lost does it again: a step of one owner may be repeated.
status row_store::change_together(row_link& link, std::span<const state_store::step> steps,
                                  const state_store::judge& after, bool& sent, boot_time deadline) {
  using verdict = state_store::verdict;
  const auto names = in_order(steps);
  auto rows = link.lock(names, deadline);
  if (!rows) return std::move(rows.error());
  std::vector<locked_row> all(steps.size());
  verdict so = verdict::go_on;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto at = std::lower_bound(names.begin(), names.end(), steps[i].name) - names.begin();
    all[i] = {&steps[i], std::move((*rows)[static_cast<std::size_t>(at)]), nullptr};
    if (so != verdict::go_on) continue;
    const row& now = all[i].before;
    if (now.too_long) return undone(link, record_too_long(), deadline);
    all[i].next =
        steps[i].change->apply(now.record, {now.now_at, std::max(now.now_at, now.fence_floor)});
    if (all[i].changes() && all[i].next->size() > longest_read)
      return undone(link, grown_too_long(steps[i].name), deadline);
    so = after(i);
  }
  const bool nothing = std::none_of(all.begin(), all.end(), [](auto& r) { return r.changes(); });
  if (so == verdict::undo || nothing) return link.unlock({}, 0, deadline);
  const bool sent_before = std::exchange(sent, true);
  const auto until_at = time_at(link.gives_up_at(deadline), all.front().before);
  if (auto gone = link.unlock(to_write(all), until_at, deadline); !gone) {
    if (was_refused(gone.error())) sent = sent_before;
    return gone;
  }
  for (const auto& r : all) {
    if (!r.changes()) continue;
    const auto version = r.before.version + 1;
    known_.learn(r.step->name, r.before.version,
                 {!r.next->empty(), version, *r.next, 0, r.before.fence_floor});
    if (!r.next->empty() && is_free(*r.next)) note_free(r.step->name);
  }
  return done{};
}

}  // namespace holdfast::store::sql
