#include "engine/pending_acquire.hpp"

namespace holdfast::engine {

pending_acquire::pending_acquire(order o, const claim& c)
    : pending_wait(std::move(o)), claim_(c), acquisition_(session_, *spec_, c, this) {}

errand::next pending_acquire::come_in() {
  gate* const at = spec_->gate.get();
  if (in_line_) return on_entry(at->look(acquisition_, time_.deadline(), stop()));
  in_line_ = true;
  if (at == nullptr) return at_store();
  if (auto idle = at->take_idle(*spec_)) {
    if (auto mine = hold::next_turn(std::move(idle), waited_)) return won_at_gate(std::move(mine));
  }
  return on_entry(at->join(acquisition_, time_.deadline()));
}

errand::next pending_acquire::on_entry(gate::entry in) {
  for (; in == gate::entry::passed; in = spec_->gate->join(acquisition_, time_.deadline())) {
    waited_.past_gate = session_.now();
    if (auto mine = hold::next_turn(acquisition_.take_passed(), waited_)) {
      return won_at_gate(std::move(mine));
    }
  }
  // One who is chosen waits for what comes of it, also after the deadline.
  if (in == gate::entry::waiting) {
    return look_again(session_.now() < time_.deadline() ? time_.deadline() : forever);
  }
  if (in == gate::entry::cancelled) return end(stopped());
  if (in != gate::entry::first && in != gate::entry::asked) return end(kept_out(in, *spec_));
  waited_.past_gate = session_.now();
  place_.emplace(spec_->gate.get());
  return at_store();
}

errand::next pending_acquire::won_at_gate(lease mine) {
  if (may_tell()) won(std::move(mine));
  return over();
}

std::optional<store::renewal> pending_acquire::leaving(const failure& why) {
  return leaves_nothing(why) ? std::nullopt : release_of(why);
}

lease pending_lease::begin_lease(std::shared_ptr<core> session) {
  const auto& its = session->for_holds();
  lease mine = hold::start(std::make_shared<hold>(std::move(session), its, spec_, claim_,
                                                  acquisition_.granted(), waited_));
  if (place_) place_->keep();  // until the hold is given back
  return mine;
}

namespace {

class pending_permit final : public telling_wait<pending_acquire, permit> {
 public:
  using telling_wait::telling_wait;

 private:
  void won(lease) override {}  // there is no gate
  void won(std::shared_ptr<core>) override {
    const grant& g = acquisition_.granted();
    tell(permit{to_string(g.owner), public_fence(g.fence), spec_->lease});
  }
};

}  // namespace

pending<lease> async_acquire(order o, const claim& c) {
  return pending<lease>(std::make_shared<pending_lease>(std::move(o), c));
}

pending<permit> async_acquire_detached(order o) {
  return pending<permit>(std::make_shared<pending_permit>(std::move(o), claim{}));
}

}  // namespace holdfast::engine
