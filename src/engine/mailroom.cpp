#include "engine/mailroom.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::engine {

mailroom::mailroom(store::inbox& inbox, clock& on)
    : inbox_(inbox), clock_(on), advance_id_(on.on_advance([this] { inbox_.interrupt(); })) {}

mailroom::~mailroom() { clock_.forget(advance_id_); }

mailroom::slot::slot(mailroom& room, const store::owner_id& owner) : room_(room), owner_(owner) {
  const std::lock_guard guard{room_.mutex_};
  next_ = room_.slots_;
  if (next_ != nullptr) next_->previous_ = this;
  room_.slots_ = this;
}

mailroom::slot::~slot() {
  watch({});
  const std::lock_guard guard{room_.mutex_};
  (previous_ != nullptr ? previous_->next_ : room_.slots_) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
}

void mailroom::slot::watch(std::vector<std::string> peers) {
  std::unique_lock lock{room_.mutex_};
  if (peers == watched_) return;
  watched_.swap(peers);
  const std::vector<std::string> now = watched_;
  lock.unlock();
  for (const auto& peer : now) room_.inbox_.watch(peer);
  for (const auto& peer : peers) room_.inbox_.unwatch(peer);
}

std::optional<store::notice> mailroom::slot::wait(boot_time until) {
  std::unique_lock lock{room_.mutex_};
  waiting_ = true;
  while (got_.empty() && !woken_ && room_.clock_.now() < until) {
    if (room_.reader_ == nullptr) {
      room_.read_one(lock, *this, until);
    } else {
      room_.clock_.wait_until(lock, changed_, until);
    }
  }
  waiting_ = false;
  woken_ = false;
  room_.promote();
  if (got_.empty()) return std::nullopt;
  store::notice first = std::move(got_.front());
  got_.erase(got_.begin());
  return first;
}

void mailroom::slot::wake() {
  const std::lock_guard guard{room_.mutex_};
  woken_ = true;
  room_.rouse(*this);
}

void mailroom::read_one(std::unique_lock<std::mutex>& lock, slot& reader, boot_time until) {
  reader_ = &reader;
  lock.unlock();
  auto notice = inbox_.receive(until);
  lock.lock();
  reader_ = nullptr;
  if (notice) deliver(std::move(*notice));
}

void mailroom::deliver(store::notice&& n) {
  const bool departed = n.what == store::notice_kind::departed;
  const auto to = n.what == store::notice_kind::wanted ? store::owner_id{} : n.owner;
  for (slot* s = slots_; s != nullptr; s = s->next_) {
    if (departed) {
      if (std::find(s->watched_.begin(), s->watched_.end(), n.peer) == s->watched_.end()) continue;
      s->woken_ = true;
      rouse(*s);
    } else if (s->owner_ == to) {
      s->got_.push_back(std::move(n));
      return rouse(*s);
    }
  }
}

void mailroom::rouse(slot& s) {
  if (reader_ == &s) {
    inbox_.interrupt();
  } else {
    s.changed_.notify_one();
  }
}

// Somebody has to read, if anybody waits.
void mailroom::promote() {
  if (reader_ != nullptr) return;
  for (slot* s = slots_; s != nullptr; s = s->next_) {
    if (s->waiting_) return s->changed_.notify_one();
  }
}

}  // namespace holdfast::engine
