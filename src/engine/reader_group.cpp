#include "engine/reader_group.hpp"

#include "engine/acquire.hpp"
#include "engine/core.hpp"

namespace holdfast::engine {

// What limits a single hold is not for others.
bool reader_group::shares(const spec& s) noexcept {
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

/// The turn to ask for all, if nobody has it. Made with the mutex held; ends whatever happens.
class reader_group::turn {
 public:
  explicit turn(reader_group& at) : at_(at), for_all_(!std::exchange(at.asking_, true)) {}
  ~turn() {
    if (!for_all_) return;
    const std::lock_guard guard{at_.mutex_};
    at_.end_turn();
  }
  turn(const turn&) = delete;
  turn& operator=(const turn&) = delete;

  bool for_all() const noexcept { return for_all_; }
  void share(const std::shared_ptr<hold>& won) const {
    const std::lock_guard guard{at_.mutex_};
    at_.current_ = won;
  }

 private:
  reader_group& at_;
  const bool for_all_;
};

void reader_group::end_turn() {
  asking_ = false;
  changed_.notify_all();
  for (waker* const w : visitors_) w->wake();
}

bool reader_group::full(const spec& s) const noexcept {
  return waiting_ + visitors_.size() >= s.max_waiters;
}

reader_group::visit::way reader_group::visit::look(const spec& s, bool passes_writers,
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

std::shared_ptr<hold> reader_group::join(const spec& s, bool passes_writers) {
  auto h = current_.lock();
  const bool writer_waits = h && (writers_ > 0 || wanted_ == h->owner());
  if (!h || (writer_waits && !passes_writers) || !h->fits(s)) return nullptr;
  return h->state() == lease_state::held && h->add_user() ? h : nullptr;
}

result<lease> reader_group::enter(const std::shared_ptr<core>& session,
                                  const std::shared_ptr<const spec>& s, const claim& c,
                                  bool passes_writers, wait_time wait, std::stop_token stop) {
  if (!shares(*s)) return acquire(session, s, c, wait, std::move(stop));
  if (auto usable = session->usable(); !usable) return std::move(usable.error());
  const timed_call call(clock_.now(), wait);
  const std::stop_callback on_stop{stop, [&] {
                                     const std::lock_guard guard{mutex_};
                                     changed_.notify_all();
                                   }};
  std::unique_lock lock{mutex_};
  while (true) {
    if (auto h = join(*s, passes_writers)) {
      lock.unlock();
      return hold::joined(std::move(h), call.began());
    }
    // Whoever cannot wait asks for itself.
    if (!asking_ || stop.stop_requested() || clock_.now() >= call.deadline()) break;
    if (full(*s)) return kept_out(gate::entry::overloaded, *s);
    ++waiting_;
    clock_.wait_until(lock, changed_, call.deadline());
    --waiting_;
  }
  const turn mine(*this);
  lock.unlock();
  claim shared = c;
  shared.told_when_wanted = true;
  auto got = acquire(session, s, shared, call, stop);
  if (got && mine.for_all()) mine.share(hold::shared_behind(*got));
  return got;
}

}  // namespace holdfast::engine
