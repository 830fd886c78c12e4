#include "family/own_entries.hpp"

#include <algorithm>

namespace holdfast::family {

namespace {
constexpr unsigned longest_quiet = 8;
constexpr std::chrono::milliseconds memory_retry{10};
/// The longest pause between reads that find the same.
constexpr std::chrono::milliseconds longest_between_looks{100};
}  // namespace

void paced_looks::begins(boot_time now) noexcept {
  const std::chrono::milliseconds pause(in_vain_ == 0 ? 0 : 1U << std::min(in_vain_, 7U));
  looked_ = now;
  next_ = now + std::min(pause, longest_between_looks);
}

void paced_looks::called(boot_time now) noexcept {
  if (now - looked_ > longest_between_looks) in_vain_ = 0;
}

void paced_looks::ended(boot_time now, std::string found) {
  in_vain_ = found_ == found ? in_vain_ + 1 : 0;
  found_ = std::move(found);
  begins(now);
}

bool own_entry::nothing_new() const {
  return quiet < longest_quiet && !waits_for.empty() &&
         std::all_of(
             waits_for.begin(), waits_for.end(),
             [&](const auto& p) { return watched.contains(p); });
}

bool is_of_an_ended_session(const own_entry& mine, const store::contender_store& of) {
  return !mine.nodes.empty() && of.safe_until(mine.session) == boot_time{};
}

std::optional<own_entry> own_entries::find(std::string_view name,
                                           const store::owner_id& owner) const {
  const std::lock_guard guard{mutex_};
  const auto at = entries_.find({std::string(name), owner});
  return at == entries_.end() ? std::nullopt : std::optional(at->second);
}

void own_entries::put(const store::owner_id& owner, own_entry node) {
  const std::lock_guard guard{mutex_};
  if (wake_time_.comes_before(node.ends)) changed_.notify_one();
  const auto [at, is_new] = entries_.try_emplace({node.name, owner});
  if (!is_new) forget_watched(node.name, owner, at->second);
  at->second = std::move(node);
}

void own_entries::erase(std::string_view name, const store::owner_id& owner) {
  const std::lock_guard guard{mutex_};
  const auto at = entries_.find({std::string(name), owner});
  if (at == entries_.end()) return;
  forget_watched(name, owner, at->second);
  entries_.erase(at);
}

void own_entries::forget_watched(std::string_view name, const store::owner_id& owner) {
  (void)change(name, owner, [&](own_entry& p) { forget_watched(name, owner, p); });
}

void own_entries::forget_watched(std::string_view name, const store::owner_id& owner,
                                 const std::string& what) {
  (void)change(name, owner, [&](own_entry& p) { p.watched.erase(what); });
  watches_.forget(name, what, owner);
}

void own_entries::forget_watched(std::string_view name, const store::owner_id& owner,
                                 own_entry& node) {
  for (const auto& [what, weight] : node.watched) watches_.forget(name, what, owner);
  node.watched.clear();
}

bool own_entries::change(std::string_view name, const store::owner_id& owner,
                         const std::function<void(own_entry&)>& how) {
  const std::lock_guard guard{mutex_};
  const auto at = entries_.find({std::string(name), owner});
  if (at == entries_.end()) return false;
  how(at->second);
  if (wake_time_.comes_before(at->second.ends)) changed_.notify_one();
  return true;
}

void own_entries::later(job j) {
  one_job one;
  one.push_back(std::move(j));
  later(std::move(one));
}

// There is only one job of see_arrivals for an owner, however often it is added. Otherwise a store
// that called the alarm, and then did not answer, would be asked twice the next time, and would
// watch twice from then on.
void own_entries::later(one_job j) noexcept {
  const std::lock_guard guard{mutex_};
  job& added = j.front();
  if (added.what == job::kind::see_arrivals) {
    jobs_.remove_if([&](const job& other) {
      const bool same =
          other.what == added.what && other.owner == added.owner && other.name == added.name;
      if (same) added.at = std::min(added.at, other.at);
      if (same && giving_up_ == &other) giving_up_ = nullptr;  // the thread has put it back
      return same;
    });
  }
  jobs_.splice(jobs_.end(), j);
  changed_.notify_one();
}

boot_time own_entries::next_at() const {
  boot_time first = forever;
  for (const auto& [whose, node] : entries_) first = std::min(first, node.ends);
  for (const job& j : jobs_) first = std::min(first, j.at);
  return first;
}

own_entries::one_job own_entries::take_due(boot_time now) {
  one_job due;
  for (auto j = jobs_.begin(); j != jobs_.end(); ++j) {
    if (j->at > now) continue;
    due.splice(due.end(), jobs_, j);
    return due;
  }
  for (auto p = entries_.begin(); p != entries_.end(); ++p) {
    if (p->second.ends > now) continue;
    due.emplace_back();  // takes memory; the rest takes none
    own_entry& over = p->second;
    forget_watched(over.name, p->first.owner, over);
    due.front() = {job::kind::give_up, std::move(over.name), p->first.owner, std::move(over.nodes),
                   over.unsure};
    entries_.erase(p);
    return due;
  }
  return due;
}

std::optional<own_entries::job> own_entries::take_over(std::string_view name,
                                                       const store::owner_id& owner) {
  std::unique_lock lock{mutex_};
  const auto is_of_it = [&](const job& j) {
    return j.what == job::kind::give_up && j.owner == owner && j.name == name;
  };
  while (giving_up_ != nullptr && is_of_it(*giving_up_)) {
    clock_.wait_until(lock, given_up_, forever);
  }
  std::optional<job> all;
  std::erase_if(jobs_, [&](job& j) {
    if (!is_of_it(j)) return false;
    if (!all) return all = std::move(j), true;
    all->nodes.insert(all->nodes.end(), j.nodes.begin(), j.nodes.end());
    all->unsure |= j.unsure;
    return true;
  });
  return all;
}

own_entries::one_job own_entries::next() noexcept {
  std::unique_lock lock{mutex_};
  giving_up_ = nullptr;
  given_up_.notify_all();
  while (!stopping_) {
    const boot_time now = clock_.now();
    boot_time until = now + memory_retry;
    try {
      if (auto due = take_due(now); !due.empty()) {
        giving_up_ = &due.front();
        return due;
      }
      until = wake_time_.sleep_until(next_at(), now);
    } catch (...) {
      // No memory: tries again soon.
    }
    clock_.wait_until(lock, changed_, until);
  }
  return {};
}

void own_entries::stop() {
  const std::lock_guard guard{mutex_};
  stopping_ = true;
  changed_.notify_one();
}

}  // namespace holdfast::family
