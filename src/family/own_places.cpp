#include "family/own_places.hpp"

#include <algorithm>

namespace holdfast::family {

bool own_place::nothing_new() const {
  return !waits_for.empty() && std::all_of(waits_for.begin(), waits_for.end(),
                                           [&](const auto& p) { return watched.contains(p); });
}

std::optional<own_place> own_places::find(const store::owner_id& owner) const {
  const std::lock_guard guard{mutex_};
  const auto at = places_.find(owner);
  return at == places_.end() ? std::nullopt : std::optional(at->second);
}

void own_places::put(const store::owner_id& owner, own_place place) {
  const std::lock_guard guard{mutex_};
  if (place.ends < sleeping_until_) changed_.notify_one();
  places_.insert_or_assign(owner, std::move(place));
}

void own_places::erase(const store::owner_id& owner) {
  const std::lock_guard guard{mutex_};
  places_.erase(owner);
}

bool own_places::change(const store::owner_id& owner, const std::function<void(own_place&)>& how) {
  const std::lock_guard guard{mutex_};
  const auto at = places_.find(owner);
  if (at == places_.end()) return false;
  how(at->second);
  if (at->second.ends < sleeping_until_) changed_.notify_one();
  return true;
}

void own_places::later(job j) {
  const std::lock_guard guard{mutex_};
  jobs_.push_back(std::move(j));
  changed_.notify_one();
}

boot_time own_places::next_at() const {
  boot_time first = forever;
  for (const auto& [owner, place] : places_) first = std::min(first, place.ends);
  for (const job& j : jobs_) first = std::min(first, j.at);
  return first;
}

std::optional<own_places::job> own_places::take_due(boot_time now) {
  for (auto j = jobs_.begin(); j != jobs_.end(); ++j) {
    if (j->at > now) continue;
    job due = std::move(*j);
    jobs_.erase(j);
    return due;
  }
  for (auto p = places_.begin(); p != places_.end(); ++p) {
    if (p->second.ends > now) continue;
    own_place& over = p->second;
    job due{job::kind::give_up, std::move(over.name), p->first, std::move(over.nodes), over.unsure};
    places_.erase(p);
    return due;
  }
  return std::nullopt;
}

std::optional<own_places::job> own_places::next() {
  std::unique_lock lock{mutex_};
  while (!stopping_) {
    if (auto due = take_due(clock_.now())) return due;
    sleeping_until_ = next_at();
    clock_.wait_until(lock, changed_, sleeping_until_);
    sleeping_until_ = boot_time::min();
  }
  return std::nullopt;
}

void own_places::stop() {
  const std::lock_guard guard{mutex_};
  stopping_ = true;
  changed_.notify_one();
}

}  // namespace holdfast::family
