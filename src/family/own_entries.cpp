#include "family/own_entries.hpp"

#include <algorithm>

namespace holdfast::family {

namespace {
constexpr unsigned longest_quiet = 8;
}

bool own_entry::nothing_new() const {
  return quiet < longest_quiet && !waits_for.empty() &&
         std::all_of(
             waits_for.begin(), waits_for.end(),
             [&](const auto& p) { return watched.contains(p); });
}

std::optional<own_entry> own_entries::find(std::string_view name,
                                           const store::owner_id& owner) const {
  const std::lock_guard guard{mutex_};
  const auto at = entries_.find({std::string(name), owner});
  return at == entries_.end() ? std::nullopt : std::optional(at->second);
}

void own_entries::put(const store::owner_id& owner, own_entry node) {
  const std::lock_guard guard{mutex_};
  if (node.ends < sleeping_until_) changed_.notify_one();
  store::owned_name whose{node.name, owner};
  entries_.insert_or_assign(std::move(whose), std::move(node));
}

void own_entries::erase(std::string_view name, const store::owner_id& owner) {
  const std::lock_guard guard{mutex_};
  entries_.erase({std::string(name), owner});
}

bool own_entries::change(std::string_view name, const store::owner_id& owner,
                         const std::function<void(own_entry&)>& how) {
  const std::lock_guard guard{mutex_};
  const auto at = entries_.find({std::string(name), owner});
  if (at == entries_.end()) return false;
  how(at->second);
  if (at->second.ends < sleeping_until_) changed_.notify_one();
  return true;
}

void own_entries::later(job j) {
  const std::lock_guard guard{mutex_};
  jobs_.push_back(std::move(j));
  changed_.notify_one();
}

boot_time own_entries::next_at() const {
  boot_time first = forever;
  for (const auto& [whose, node] : entries_) first = std::min(first, node.ends);
  for (const job& j : jobs_) first = std::min(first, j.at);
  return first;
}

std::optional<own_entries::job> own_entries::take_due(boot_time now) {
  for (auto j = jobs_.begin(); j != jobs_.end(); ++j) {
    if (j->at > now) continue;
    job due = std::move(*j);
    jobs_.erase(j);
    return due;
  }
  for (auto p = entries_.begin(); p != entries_.end(); ++p) {
    if (p->second.ends > now) continue;
    own_entry& over = p->second;
    job due{job::kind::give_up, std::move(over.name), p->first.owner, std::move(over.nodes),
            over.unsure};
    entries_.erase(p);
    return due;
  }
  return std::nullopt;
}

std::optional<own_entries::job> own_entries::take_over(std::string_view name,
                                                       const store::owner_id& owner) {
  std::unique_lock lock{mutex_};
  const store::owned_name whose{std::string(name), owner};
  while (giving_up_ == whose) clock_.wait_until(lock, given_up_, forever);
  std::optional<job> all;
  std::erase_if(jobs_, [&](job& j) {
    if (j.what != job::kind::give_up || j.owner != owner || j.name != name) return false;
    if (!all) return all = std::move(j), true;
    all->nodes.insert(all->nodes.end(), j.nodes.begin(), j.nodes.end());
    all->unsure |= j.unsure;
    return true;
  });
  return all;
}

std::optional<own_entries::job> own_entries::next() {
  std::unique_lock lock{mutex_};
  giving_up_.reset();
  given_up_.notify_all();
  while (!stopping_) {
    if (auto due = take_due(clock_.now())) {
      if (due->what == job::kind::give_up) giving_up_ = store::owned_name{due->name, due->owner};
      return due;
    }
    sleeping_until_ = next_at();
    clock_.wait_until(lock, changed_, sleeping_until_);
    sleeping_until_ = boot_time::min();
  }
  return std::nullopt;
}

void own_entries::stop() {
  const std::lock_guard guard{mutex_};
  stopping_ = true;
  changed_.notify_one();
}

}  // namespace holdfast::family
