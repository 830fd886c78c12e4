#include "wait/pending_acquire.hpp"

namespace holdfast::engine {

pending_acquire::pending_acquire(async_request o)
    : pending_wait(std::move(o)), acquisition_(session_, *config_, how_, this) {}

operation::next pending_acquire::come_in() {
  local_queue* const at = config_->local_queue.get();
  if (in_line_) return on_entry(at->look(acquisition_, time_.deadline(), stop()));
  in_line_ = true;
  if (at == nullptr) return at_store();
  if (auto idle = at->take_idle(*config_)) {
    std::optional<local_turn> of_the_first_waiter;
    if (auto mine = hold::next_turn(std::move(idle), waited_, of_the_first_waiter))
      return won_in_local_queue(std::move(mine));
  }
  return on_entry(at->join(acquisition_, time_.deadline()));
}

operation::next pending_acquire::on_entry(local_queue::entry in) {
  while (in == local_queue::entry::passed) {
    waited_.past_local_queue = session_.now();
    if (auto mine = hold::next_turn(acquisition_.take_passed(), waited_, turn_)) {
      return won_in_local_queue(std::move(mine));
    }
    in = turn_ ? local_queue::entry::first
               : config_->local_queue->join(acquisition_, time_.deadline());
  }
  if (in == local_queue::entry::waiting) return retry_after(time_.deadline());
  if (in == local_queue::entry::chosen) return retry_after(forever);
  if (in == local_queue::entry::gone && stop().stop_requested()) return end(stopped());
  if (in != local_queue::entry::first && in != local_queue::entry::asked)
    return end(kept_out(in, *config_, time_.is_try()));
  waited_.past_local_queue = session_.now();
  if (!turn_) turn_.emplace(config_->local_queue.get());
  return at_store();
}

operation::next pending_acquire::won_in_local_queue(lease mine) {
  won(std::move(mine));
  return over();
}

bool pending_acquire::come_out() noexcept {
  return !in_line_ || turn_ || !config_->local_queue || config_->local_queue->give_up(acquisition_);
}

std::optional<store::named_command> pending_acquire::leaving(const failure& why) {
  if (acquisition_.left_behind()) return abandon(), std::nullopt;
  return leaves_nothing(why) ? std::nullopt : release_of(why);
}

lease pending_lease::begin_lease(std::shared_ptr<session_impl> session) {
  lease mine =
      engine::begin_lease(std::move(session), config_, how_, acquisition_.granted(), waited_);
  if (turn_) turn_->keep();  // until the hold is released
  return mine;
}

namespace {

class pending_permit final : public telling_wait<pending_acquire, permit> {
 public:
  using telling_wait::telling_wait;

 private:
  void won(lease) override {}  // there is no local queue
  void won(std::shared_ptr<session_impl>) override {
    const grant& g = acquisition_.granted();
    tell(permit{to_string(g.owner), public_fence(g.fence), config_->lease});
  }
};

}  // namespace

pending<lease> async_acquire(async_request o) {
  return pending<lease>(std::make_shared<pending_lease>(std::move(o)));
}

pending<permit> async_acquire_permit(async_request o) {
  return pending<permit>(std::make_shared<pending_permit>(std::move(o)));
}

}  // namespace holdfast::engine
