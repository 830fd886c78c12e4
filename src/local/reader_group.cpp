#include "local/reader_group.hpp"

#include <utility>

namespace holdfast::engine {

// What limits a single hold is not for others.
bool reader_group::shares(const lock_config& s) noexcept {
  return s.renew && s.max_hold == std::chrono::milliseconds::max();
}

reader_group::writer::writer(reader_group& at) : at_(at) {
  const std::lock_guard guard{at_.mutex_};
  ++at_.writers_;
}

reader_group::writer::~writer() {
  const std::lock_guard guard{at_.mutex_};
  --at_.writers_;
}

void reader_group::end_turn() {
  asking_ = false;
  for (waker* const w : visitors_) w->wake();
}

bool reader_group::full(const lock_config& s) const noexcept {
  return visitors_.size() >= s.max_waiters;
}

reader_group::visit::way reader_group::visit::look(const lock_config& s, bool passes_writers,
                                                   bool may_wait) {
  const std::lock_guard guard{at_->mutex_};
  at_->visitors_.erase(&who_);
  if ((joined_ = at_->join(s, passes_writers))) return way::joined;
  if (!at_->asking_ || !may_wait) {
    asks_for_all_ = !std::exchange(at_->asking_, true);
    return way::asks;
  }
  if (at_->full(s)) return way::overloaded;
  at_->visitors_.insert(&who_);
  return way::waits;
}

void reader_group::visit::share(const std::shared_ptr<hold>& won) {
  if (!asks_for_all_) return;
  {
    const std::lock_guard guard{at_->mutex_};
    at_->current_ = won;
  }
  leave();
}

void reader_group::visit::leave() {
  const std::lock_guard guard{at_->mutex_};
  at_->visitors_.erase(&who_);
  if (std::exchange(asks_for_all_, false)) at_->end_turn();
}

void reader_group::wanted(const store::owner_id& held) {
  const std::lock_guard guard{mutex_};
  wanted_ = held;
}

bool reader_group::keep_alone(const hold& mine) {
  const std::lock_guard guard{mutex_};
  if (mine.users() > 1) return false;
  if (current_.lock().get() == &mine) current_.reset();
  return true;
}

std::shared_ptr<hold> reader_group::join(const lock_config& s, bool passes_writers) {
  auto h = current_.lock();
  const bool writer_waits = h && (writers_ > 0 || wanted_ == h->owner());
  if (!h || (writer_waits && !passes_writers) || !h->fits(s)) return nullptr;
  return h->state() == lease_state::held && h->add_user() ? h : nullptr;
}

}  // namespace holdfast::engine
