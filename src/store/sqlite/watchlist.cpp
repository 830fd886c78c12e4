#include "store/sqlite/watchlist.hpp"

#include <poll.h>
#include <sys/epoll.h>

namespace holdfast::store::sqlite {
namespace {

constexpr std::size_t most_kept = 64;

bool readable_now(int fd) noexcept {
  pollfd one{fd, POLLIN, 0};
  return ::poll(&one, 1, 0) > 0;
}

}  // namespace

bool watchlist::watch(std::string_view who) {
  const std::lock_guard lock{mutex_};
  const auto at = find_or_add(who);
  ++at->second.times;
  if (at->second.ended) ended_.push_back(at->first);
  return at->second.ended;
}

void watchlist::unwatch(std::string_view who) noexcept {
  const std::lock_guard lock{mutex_};
  const auto at = entries_.find(who);
  if (at == entries_.end() || at->second.times == 0) return;
  if (--at->second.times > 0) return;
  if (!at->second.process) entries_.erase(at);
}

bool watchlist::departed(std::string_view who) {
  const std::lock_guard lock{mutex_};
  const auto at = find_or_add(who);
  watched& entry = at->second;
  // Without a descriptor of the process (the limit may be reached, or the right missing) nothing
  // reports its end, so it is checked here.
  if (!entry.process && !entry.ended) entry.ended = has_departed(who);
  const bool gone = entry.ended || (entry.process && readable_now(entry.process.get()));
  if (entry.times == 0 && !entry.process) entries_.erase(at);
  return gone;
}

bool watchlist::has_departed(std::string_view who) const noexcept {
  const auto identity = parse_peer(who);
  return identity && sqlite::departed(*identity, self_);
}

watchlist::entries::iterator watchlist::find_or_add(std::string_view who) {
  if (const auto at = entries_.find(who); at != entries_.end()) return at;
  if (entries_.size() >= most_kept) drop_unwatched();
  const auto at = entries_.try_emplace(std::string{who}).first;
  start_looking(at->second, at->first);
  return at;
}

void watchlist::start_looking(watched& entry, const std::string& who) {
  const auto identity = parse_peer(who);
  if (!identity || identity->same_process(self_)) return;
  entry.process = watch_process(*identity, self_);
  if (!entry.process) {
    entry.ended = sqlite::departed(*identity, self_);
    return;
  }
  entry.key = next_key_++;
  by_key_.emplace(entry.key, entries_.find(who));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = entry.key;
  if (::epoll_ctl(poll_, EPOLL_CTL_ADD, entry.process.get(), &event) != 0) stop_looking(entry);
}

// Removes the descriptor from the poll explicitly: a child process may hold a copy of it, and then
// closing ours alone would leave it in the poll for ever.
void watchlist::stop_looking(watched& entry) noexcept {
  if (!entry.process) return;
  ::epoll_ctl(poll_, EPOLL_CTL_DEL, entry.process.get(), nullptr);
  entry.process.reset();
  by_key_.erase(entry.key);
}

void watchlist::drop_unwatched() noexcept {
  for (auto at = entries_.begin(); at != entries_.end();) {
    const auto here = at++;
    if (here->second.times > 0) continue;
    stop_looking(here->second);
    entries_.erase(here);
  }
}

void watchlist::note_end(std::uint64_t key) {
  const std::lock_guard lock{mutex_};
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return;
  const auto at = found->second;
  stop_looking(at->second);
  at->second.ended = true;
  if (at->second.times > 0) {
    ended_.push_back(at->first);
  } else {
    entries_.erase(at);
  }
}

std::optional<std::string> watchlist::next_ended() {
  const std::lock_guard lock{mutex_};
  while (!ended_.empty()) {
    std::string who = std::move(ended_.front());
    ended_.pop_front();
    const auto at = entries_.find(who);
    if (at != entries_.end() && at->second.times > 0) return who;
  }
  return std::nullopt;
}

}  // namespace holdfast::store::sqlite
