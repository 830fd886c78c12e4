#include "local/reader_group.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace holdfast::engine {

// A limit of one hold must not affect other readers.
bool reader_group::shares(const lock_config& s) noexcept {
  return s.renew && s.max_hold == std::chrono::milliseconds::max();
}

reader_group::writer::writer(reader_group& at) : at_(at) {
  const std::lock_guard guard{at_.mutex_};
  number_ = ++at_.last_number_;
  at_.writers_.insert(number_);
}

reader_group::writer::~writer() {
  const std::lock_guard guard{at_.mutex_};
  at_.writers_.erase(number_);
}

// The first reader in the queue asks, not the first to wake: otherwise its queue entry at the store
// could be behind writers that arrived after other readers, each time a reader gives up.
void reader_group::end_turn() noexcept {
  asking_ = !visitors_.empty();
  if (!asking_) return;
  visit& next = *visitors_.begin()->second;
  visitors_.erase(visitors_.begin());
  next.asks_for_all_ = true;
  next.who_.wake();
}

reader_group::visit::way reader_group::visit::look(const lock_config& s, bool passes_writers,
                                                   bool may_wait) {
  if (is_in()) return way::joined;
  const std::lock_guard guard{at_->mutex_};
  if (number_ == 0) number_ = ++at_->last_number_;
  at_->visitors_.erase(number_);
  if (!joined_) joined_ = at_->join(s, passes_writers);
  if (joined_) {
    if (std::exchange(asks_for_all_, false)) at_->end_turn();
    return way::joined;
  }
  if (asks_for_all_) return way::asks;
  if (!at_->asking_ || !may_wait) {
    asks_for_all_ = !std::exchange(at_->asking_, true);
    return way::asks;
  }
  if (at_->visitors_.size() >= s.max_waiters) return way::overloaded;
  wants_ = &s;
  at_->visitors_.emplace(number_, this);
  return way::waits;
}

// Once `joined_` is set, only this reader touches it.
bool reader_group::visit::is_in() noexcept {
  if (number_ == 0) return false;
  {
    const std::lock_guard guard{at_->mutex_};
    if (!joined_) return false;
  }
  if (joined_->state() == lease_state::held) return true;
  hold::leave_unseen(std::move(joined_));
  return false;
}

void reader_group::visit::share(const std::shared_ptr<hold>& won) {
  if (!asks_for_all_) return;
  {
    const std::lock_guard guard{at_->mutex_};
    at_->current_ = won;
    at_->let_in(won);
  }
  leave();
}

void reader_group::visit::leave() noexcept {
  if (number_ == 0) return;  // never arrived; in a forked child the mutex may be the parent's
  {
    const std::lock_guard guard{at_->mutex_};
    at_->visitors_.erase(number_);
    if (std::exchange(asks_for_all_, false)) at_->end_turn();
  }
  if (joined_) hold::leave_unseen(std::move(joined_));
}

// Admits the waiting readers at once. If each had to join when it woke, a writer announced
// meanwhile would go first, again and again. Writers of this process that arrived before a reader
// still precede it.
void reader_group::let_in(const std::shared_ptr<hold>& won) noexcept {
  const auto last = writers_.empty() ? visitors_.end() : visitors_.lower_bound(*writers_.begin());
  for (auto v = visitors_.begin(); v != last;) {
    visit& who = *v->second;
    const bool in = won->fits(*who.wants_) && won->add_user();
    v = in ? visitors_.erase(v) : std::next(v);
    if (!in) continue;
    who.joined_ = won;
    who.who_.wake();
  }
}

// A process may have several holds of one name, and the store announces a waiting writer to each of
// them, in any order.
void reader_group::wanted(std::uint64_t fence) {
  const std::lock_guard guard{mutex_};
  wanted_ = std::max(wanted_, fence);
}

bool reader_group::keep_alone(const hold& mine) {
  const std::lock_guard guard{mutex_};
  if (mine.users() > 1) return false;
  if (current_.lock().get() == &mine) current_.reset();
  return true;
}

std::shared_ptr<hold> reader_group::join(const lock_config& s, bool passes_writers) {
  auto h = current_.lock();
  const bool writer_waits = h && (!writers_.empty() || h->fence() <= wanted_);
  if (!h || (writer_waits && !passes_writers) || !h->fits(s)) return nullptr;
  return h->state() == lease_state::held && h->add_user() ? h : nullptr;
}

}  // namespace holdfast::engine
