#include "simulation/advisory_locks.hpp"

#include <algorithm>

namespace simulation {

namespace {

bool conflict(bool one_shared, bool other_shared) noexcept { return !one_shared || !other_shared; }

}  // namespace

advisory_locks::asks advisory_locks::of(const std::string& text) {
  const auto has = [&](const char* what) { return text.find(what) != text.npos; };
  if (has("pg_cancel_backend(")) return asks::cancel;
  if (has("pg_locks")) return asks::users;
  if (has("pg_settings")) return asks::set;
  if (!has("advisory_")) return has("transaction_read_only") ? asks::ping : asks::nothing;
  if (has("then case when")) return has("pg_advisory_unlock_shared(") ? asks::raise : asks::lower;
  if (has("pg_try_advisory_lock_shared(")) return asks::try_shared;
  if (has("pg_try_advisory_lock(")) return asks::try_exclusive;
  if (has("pg_advisory_unlock_shared(")) return asks::unlock_shared;
  if (has("pg_advisory_unlock(")) return asks::unlock_exclusive;
  return has("pg_advisory_lock_shared(") ? asks::wait_shared : asks::wait_exclusive;
}

bool advisory_locks::conflicts_with_holders(const lock& l, int who, bool shared) {
  return std::any_of(l.held.begin(), l.held.end(), [&](const auto& h) {
    const auto& [other, c] = h;
    return other != who && ((c.exclusive > 0 && conflict(shared, false)) ||
                            (c.shared > 0 && conflict(shared, true)));
  });
}

void advisory_locks::grant(lock& l, int who, bool shared) {
  ++(shared ? l.held[who].shared : l.held[who].exclusive);
}

bool advisory_locks::holds(int who, const std::string& key, bool shared) const {
  const auto at = all_.find(key);
  if (at == all_.end()) return false;
  const auto mine = at->second.held.find(who);
  if (mine == at->second.held.end()) return false;
  return (shared ? mine->second.shared : mine->second.exclusive) > 0;
}

bool advisory_locks::try_now(int who, const std::string& key, bool shared) {
  lock& l = all_[key];
  const bool again = holds(who, key, shared);
  const bool behind = std::any_of(l.queue.begin(), l.queue.end(),
                                  [&](const waiting& w) { return conflict(shared, w.shared); });
  if (!again && (behind || conflicts_with_holders(l, who, shared))) return false;
  grant(l, who, shared);
  return true;
}

bool advisory_locks::take_or_wait(int who, const std::string& key, bool shared) {
  if (try_now(who, key, shared)) return true;
  lock& l = all_[key];
  // Queued before the first waiter that has to wait for a lock this connection holds.
  const auto must_wait_for_it = [&](const waiting& w) {
    const auto mine = l.held.find(who);
    return mine != l.held.end() && ((mine->second.exclusive > 0 && conflict(w.shared, false)) ||
                                    (mine->second.shared > 0 && conflict(w.shared, true)));
  };
  const auto at = std::find_if(l.queue.begin(), l.queue.end(), must_wait_for_it);
  const bool behind = std::any_of(l.queue.begin(), at,
                                  [&](const waiting& w) { return conflict(shared, w.shared); });
  if (at != l.queue.end() && !behind && !conflicts_with_holders(l, who, shared)) {
    grant(l, who, shared);
    return true;
  }
  l.queue.insert(at, {who, shared});
  return false;
}

bool advisory_locks::give_back(int who, const std::string& key, bool shared) {
  if (!holds(who, key, shared)) return false;
  auto& mine = all_[key].held[who];
  --(shared ? mine.shared : mine.exclusive);
  if (mine.shared == 0 && mine.exclusive == 0) all_[key].held.erase(who);
  return true;
}

void advisory_locks::stop_waiting(int who) {
  for (auto& [key, l] : all_) {
    std::erase_if(l.queue, [&](const waiting& w) { return w.who == who; });
  }
}

void advisory_locks::end(int who) {
  stop_waiting(who);
  for (auto& [key, l] : all_) l.held.erase(who);
}

std::vector<int> advisory_locks::let_in() {
  std::vector<int> all;
  for (auto& [key, l] : all_) {
    std::deque<waiting> still;
    for (const waiting& w : l.queue) {
      const bool behind = std::any_of(still.begin(), still.end(), [&](const waiting& before) {
        return conflict(w.shared, before.shared);
      });
      if (behind || conflicts_with_holders(l, w.who, w.shared)) {
        still.push_back(w);
        continue;
      }
      grant(l, w.who, w.shared);
      all.push_back(w.who);
    }
    l.queue = std::move(still);
  }
  return all;
}

std::vector<advisory_locks::user> advisory_locks::users_of(const std::string& key) const {
  std::vector<user> all;
  const auto at = all_.find(key);
  if (at == all_.end()) return all;
  for (const auto& [who, c] : at->second.held) {
    if (c.exclusive > 0) all.push_back({who, true, false});
    if (c.shared > 0) all.push_back({who, true, true});
  }
  for (const waiting& w : at->second.queue) all.push_back({w.who, false, w.shared});
  return all;
}

std::vector<std::string> advisory_locks::held_by(int who) const {
  std::vector<std::string> all;
  for (const auto& [key, l] : all_) {
    if (l.held.contains(who)) all.push_back(key);
  }
  return all;
}

std::vector<std::string> advisory_locks::names() const {
  std::vector<std::string> all;
  for (const auto& [key, l] : all_) {
    if (!l.held.empty() || !l.queue.empty()) all.push_back(key);
  }
  return all;
}

}  // namespace simulation
