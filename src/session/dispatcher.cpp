#include "session/dispatcher.hpp"

#include <algorithm>
#include <utility>

#include "session/no_memory.hpp"

namespace holdfast::engine {

dispatcher::dispatcher(store::inbox& inbox, clock& on)
    : inbox_(inbox), clock_(on), advance_id_(on.on_advance([this] { inbox_.interrupt(); })) {}

dispatcher::~dispatcher() { clock_.forget(advance_id_); }

dispatcher::registration::registration(dispatcher& room, const store::owner_id& owner)
    : room_(room), owner_(owner) {
  const std::lock_guard guard{room_.mutex_};
  room_.put_in(*this);
}

dispatcher::registration::registration(dispatcher& room, for_many)
    : registration(room, store::owner_id{~0U, ~0U}) {}

void dispatcher::registration::listen(bool on) {
  const std::lock_guard guard{room_.mutex_};
  room_.for_many_ = on ? this : nullptr;
  got_.clear();
  spare_.reset();
}

void dispatcher::put_in(registration& s) {
  s.next_ = registrations_;
  if (registrations_ != nullptr) registrations_->previous_ = &s;
  registrations_ = &s;
}

dispatcher::registration::~registration() {
  watch({});
  const std::lock_guard guard{room_.mutex_};
  if (room_.for_many_ == this) room_.for_many_ = nullptr;
  (previous_ != nullptr ? previous_->next_ : room_.registrations_) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
}

void dispatcher::registration::watch(std::vector<std::string> peers) {
  std::vector<std::string> now = peers;
  std::unique_lock lock{room_.mutex_};
  if (peers == watched_) return;
  watched_.swap(peers);
  lock.unlock();
  try {
    room_.rewatch(peers, std::move(now));
  } catch (...) {
    lock.lock();
    watched_.swap(peers);
    throw;
  }
}

void dispatcher::rewatch(std::vector<std::string>& from, std::vector<std::string> to) {
  if (from == to) return;
  std::size_t watched = 0;
  try {
    for (; watched < to.size(); ++watched) inbox_.watch(to[watched]);
  } catch (...) {
    while (watched > 0) inbox_.unwatch(to[--watched]);
    throw;
  }
  for (const auto& peer : from) inbox_.unwatch(peer);
  from = std::move(to);
}

std::optional<store::notification> dispatcher::registration::wait(boot_time until) {
  std::unique_lock lock{room_.mutex_};
  waiting_ = true;
  while (!has_news() && !woken_ && room_.clock_.now() < until) {
    if (room_.reader_ == nullptr) {
      room_.read_one(lock, *this, until);
    } else {
      room_.clock_.wait_until(lock, changed_, until);
    }
  }
  waiting_ = false;
  woken_ = false;
  room_.promote();
  if (got_.empty()) return std::exchange(spare_, std::nullopt);
  store::notification first = std::move(got_.front());
  got_.erase(got_.begin());
  if (spare_) first.secret = {};
  return first;
}

// Reads the inbox even if there are notifications already: otherwise a thread that is always busy
// would never read it.
std::vector<store::notification> dispatcher::registration::collect(boot_time until) {
  constexpr std::size_t at_once = 64;
  std::unique_lock lock{room_.mutex_};
  waiting_ = true;
  while (got_.size() < at_once) {
    const bool enough = woken_ || has_news() || room_.clock_.now() >= until;
    if (room_.reader_ == nullptr) {
      const bool read = room_.read_one(lock, *this, enough ? boot_time{} : until);
      if (enough && !read) break;
    } else if (enough) {
      break;
    } else {
      room_.clock_.wait_until(lock, changed_, until);
    }
  }
  waiting_ = false;
  woken_ = false;
  room_.promote();
  if (spare_) {
    for (auto& n : got_) n.secret = {};
  }
  if (got_.empty() && spare_) {
    got_.push_back(std::move(*spare_));
    spare_.reset();
  }
  return std::exchange(got_, {});
}

void dispatcher::registration::wake() {
  const std::lock_guard guard{room_.mutex_};
  woken_ = true;
  room_.rouse(*this);
}

// Returns true if there was a notification.
bool dispatcher::read_one(std::unique_lock<std::mutex>& lock, registration& reader,
                          boot_time until) {
  reader_ = &reader;
  lock.unlock();
  std::optional<store::notification> notification;
  bool read = true;
  try {
    notification = inbox_.receive(until);
  } catch (...) {
    read = false;
  }
  lock.lock();
  reader_ = nullptr;
  if (!read) {
    ++dropped_;
    reader.changed_.wait_for(lock, memory_retry);
  }
  if (!notification) return false;
  deliver(std::move(*notification));
  return true;
}

void dispatcher::deliver(store::notification&& n) noexcept {
  const bool departed = n.what == store::notification_kind::departed;
  const auto to = n.what == store::notification_kind::wanted ? store::owner_id{} : n.owner;
  for (registration* s = registrations_; s != nullptr; s = s->next_) {
    if (departed) {
      if (std::find(s->watched_.begin(), s->watched_.end(), n.peer) == s->watched_.end()) continue;
      s->woken_ = true;
      rouse(*s);
    } else if (s->owner_ == to) {
      return put(*s, std::move(n));
    }
  }
  if (for_many_ != nullptr) put(*for_many_, std::move(n));
}

// A notification that is dropped, or may be delivered late, counts as a gap, as if the store had
// lost it.
void dispatcher::put(registration& to, store::notification&& n) noexcept {
  try {
    to.got_.push_back(std::move(n));
  } catch (...) {
    ++dropped_;  // it may be taken after a later notification, so none of them proves anything
    n.secret = {};
    to.spare_ = std::move(n);
  }
  rouse(to);
}

void dispatcher::rouse(registration& s) {
  if (reader_ == &s) {
    inbox_.interrupt();
  } else {
    s.changed_.notify_one();
  }
}

// If there is a waiter, one of them has to read the inbox.
void dispatcher::promote() {
  if (reader_ != nullptr) return;
  for (registration* s = registrations_; s != nullptr; s = s->next_) {
    if (s->waiting_) return s->changed_.notify_one();
  }
}

}  // namespace holdfast::engine
