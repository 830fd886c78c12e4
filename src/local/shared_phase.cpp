#include "local/shared_phase.hpp"

namespace holdfast::engine {

void shared_phase::place::enter(std::uint64_t after) noexcept {
  if (mine_.empty()) return;
  const std::lock_guard guard{at_->mutex_};
  *me_ = {after, ++at_->entered_, false};
  at_->members_.splice(at_->members_.end(), mine_);
}

void shared_phase::place::leave() noexcept {
  if (!mine_.empty()) return;
  const std::lock_guard guard{at_->mutex_};
  mine_.splice(mine_.end(), at_->members_, me_);
}

// Who entered before the question was sent had been let wait before it was answered: so what ended
// for the one that asked had not ended before that.
bool shared_phase::place::goes_on(clock& on, boot_time until) {
  std::unique_lock lock{at_->mutex_};
  const auto failures = at_->failures_;
  const bool waits = mine_.empty();
  while (waits && !me_->goes_on && at_->asking_ && at_->failures_ == failures && on.now() < until) {
    on.wait_until(lock, at_->changed_, until);
  }
  if (waits && me_->goes_on) return true;
  asks_for_ = at_->entered_;
  if (!at_->asking_) has_turn_ = at_->asking_ = true;
  return false;
}

void shared_phase::place::ended(std::uint64_t fence) noexcept {
  const std::lock_guard guard{at_->mutex_};
  for (member& m : at_->members_) {
    if (m.number <= asks_for_ && m.after < fence) m.goes_on = true;
  }
  end_turn();
}

void shared_phase::place::goes_on_waiting() noexcept {
  const std::lock_guard guard{at_->mutex_};
  end_turn();
}

void shared_phase::place::failed() noexcept {
  const std::lock_guard guard{at_->mutex_};
  ++at_->failures_;
  end_turn();
}

void shared_phase::place::end_turn() noexcept {
  if (has_turn_) has_turn_ = at_->asking_ = false;
  at_->changed_.notify_all();
}

}  // namespace holdfast::engine
