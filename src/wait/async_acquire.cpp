#include "wait/pending_acquire.hpp"

namespace holdfast::engine {

pending_acquire::pending_acquire(async_request o)
    : pending_wait(std::move(o)), acquisition_(session_, *config_, how_, this) {}

operation::next pending_acquire::come_in() {
  local_queue* const at = config_->local_queue.get();
  if (in_line_) return on_entry(at->look(acquisition_, time_.deadline(), stop()));
  in_line_ = true;
  if (at == nullptr) return at_store();
  if (auto mine = idle_lease(*config_, waited_)) return won_in_local_queue(std::move(mine));
  return on_entry(at->join(acquisition_, time_.deadline()));
}

operation::next pending_acquire::on_entry(local_queue::entry in) {
  auto mine = acquisition_.let_in(in, time_, stop(), waited_);
  if (!mine) {
    return end(mine.error().code == errc::cancelled ? stopped() : std::move(mine.error()));
  }
  if (*mine) return won_in_local_queue(std::move(*mine));
  if (acquisition_.has_turn()) return at_store();
  return retry_after(in == local_queue::entry::chosen ? forever : time_.deadline());
}

operation::next pending_acquire::won_in_local_queue(lease mine) {
  won(std::move(mine));
  return over();
}

bool pending_acquire::come_out() noexcept {
  return !in_line_ || acquisition_.has_turn() || !config_->local_queue ||
         config_->local_queue->give_up(acquisition_);
}

std::optional<store::named_command> pending_acquire::leaving(const failure& why) {
  if (acquisition_.left_behind()) return abandon(), std::nullopt;
  return leaves_nothing(why) ? std::nullopt : release_of(why);
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
