#include "family/shared_watches.hpp"

namespace holdfast::family {

shared_watches::beginning::beginning(shared_watches& of, std::string_view name,
                                     std::string_view what, const store::owner_id& owner)
    : of_(of), name_(name), what_(what), owner_(owner) {
  const std::lock_guard guard{of_.mutex_};
  const auto [at, is_new] = of_.all_.try_emplace(key(name, what));
  try {
    at->second.owners.insert(owner);
  } catch (...) {
    if (is_new) of_.all_.erase(at);
    throw;
  }
  if (is_new) number_ = at->second.number = ++of_.last_number_;
}

shared_watches::alarm shared_watches::beginning::alarm() {
  if (number_ == 0) return nullptr;
  return [&of = of_, at = key(name_, what_)]() noexcept { of.changed(key_view(at)); };
}

// Notifies the owners that joined before the watch was in place, so that they poll again: there may
// have been a change between their read and the watch. The same if there is no watch.
void shared_watches::begun(std::string_view name, std::string_view what,
                           const store::owner_id& owner, std::uint64_t number,
                           bool is_watched) noexcept {
  const key_view there{name, what};
  std::unique_lock lock{mutex_};
  const auto at = all_.find(there);
  if (at == all_.end()) return;
  std::set<store::owner_id>& owners = at->second.owners;
  if (number == 0) {
    if (!is_watched) owners.erase(owner);
    return;
  }
  if (at->second.number != number) return;  // it has changed since, and has a new watch
  std::set<store::owner_id> others = std::exchange(owners, {});
  auto mine = others.extract(owner);
  if (!is_watched) {
    all_.erase(at);
  } else if (mine) {
    owners.insert(std::move(mine));
  }
  lock.unlock();
  tell(there, others);
}

void shared_watches::changed(const key_view& at) noexcept {
  std::unique_lock lock{mutex_};
  const auto found = all_.find(at);
  if (found == all_.end()) return;
  const auto gone = all_.extract(found);
  lock.unlock();
  tell(at, gone.mapped().owners);
}

void shared_watches::tell(const key_view& at, const std::set<store::owner_id>& owners) noexcept {
  for (const auto& owner : owners) {
    try {
      tell_(at.first, owner, at.second);
    } catch (...) {
      continue;  // no memory: the waiter polls
    }
  }
}

void shared_watches::forget(std::string_view name, std::string_view what,
                            const store::owner_id& owner) noexcept {
  const std::lock_guard guard{mutex_};
  const auto at = all_.find(key_view(name, what));
  if (at != all_.end()) at->second.owners.erase(owner);
}

std::size_t shared_watches::size() const {
  const std::lock_guard guard{mutex_};
  return all_.size();
}

}  // namespace holdfast::family
