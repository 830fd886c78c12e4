#include <holdfast/redlock.hpp>

#include "primitive/release_later.hpp"
#include "quorum/quorum_hold.hpp"

namespace holdfast {

using primitive::deref;

namespace {
[[noreturn]] void fail(const engine::quorum_hold& hold, failure f, std::string_view operation) {
  throw_failure(hold.of().first().located(std::move(f), operation, hold.of().name));
}

// To be called before a mutex is locked, which a thread of the parent may have held at a fork().
void require_usable(const engine::quorum_hold& hold, std::string_view operation) {
  if (auto can = hold.of().first().usable(); !can) fail(hold, std::move(can.error()), operation);
}
}  // namespace

quorum_lease::quorum_lease(std::shared_ptr<engine::quorum_hold> hold) noexcept
    : hold_(std::move(hold)) {}
quorum_lease::quorum_lease(quorum_lease&&) noexcept = default;
quorum_lease::~quorum_lease() { (void)release(); }

quorum_lease& quorum_lease::operator=(quorum_lease&& other) noexcept {
  if (this == &other) return *this;
  quorum_lease next(std::move(other));
  (void)release();
  hold_.swap(next.hold_);  // as of a lease
  return *this;
}

std::uint64_t quorum_lease::fence() const noexcept { return hold_ ? hold_->fence() : 0; }
// A callback for the loss may release the lease, which empties this object.
std::stop_token quorum_lease::lost() const {
  const auto kept = hold_;
  return kept ? kept->lost() : std::stop_token{};
}
lease_state quorum_lease::state() const noexcept {
  return hold_ ? hold_->state() : lease_state::released;
}
std::chrono::nanoseconds quorum_lease::remaining() const noexcept {
  return hold_ ? hold_->remaining() : std::chrono::nanoseconds{};
}
std::vector<vote> quorum_lease::votes() const {
  const auto& hold = deref(hold_);
  require_usable(hold, "votes");
  return hold.votes();
}

void quorum_lease::check() const {
  const auto& hold = deref(hold_);
  require_usable(hold, "check");
  const auto so = hold.state();
  if (so == lease_state::held || so == lease_state::suspect) return;
  const std::string_view why =
      hold.renews() ? "no majority renewed the lease in time" : "the lease has ended";
  fail(hold,
       {errc::lost, std::string(why) +
                        ", and another holder may have the lock: stop the work. The resource must "
                        "refuse this fence"},
       "check");
}

status release_status(quorum_lease& held) noexcept {
  const auto hold = std::move(held.hold_);
  return hold ? hold->release() : done{};
}

std::error_code quorum_lease::release() noexcept { return engine::code_of(release_status(*this)); }

namespace {

/// The asynchronous release, woken by each answer, like the asynchronous acquisition.
class pending_release final : public engine::telling_shortly<done> {
 public:
  pending_release(std::shared_ptr<engine::session_impl> first, quorum_lease held,
                  std::shared_ptr<engine::quorum_hold> hold)
      : telling_shortly(first, first->runner_of_several()),
        held_(std::move(held)),
        hold_(std::move(hold)) {}

  next step() override {
    if (!begun_) {
      begun_ = true;
      if (auto over = hold_->end()) return told(std::move(*over));
      awaited_ = hold_->begin_giving_back([self = weak_from_this()] {
        if (const auto here = self.lock()) here->wake();
      });
    }
    while (awaited_ && awaited_->is_over(session_->now())) {
      awaited_ = hold_->go_on(*std::exchange(awaited_, std::nullopt));
    }
    return awaited_ ? next{.until = awaited_->until} : told(hold_->released_as());
  }
  bool broken() noexcept override {
    if (begun_) {
      (void)hold_->give_back_in_vain();
    } else {
      hold_->let_go();
    }
    return telling_shortly::broken();
  }

 private:
  next told(status how) {
    tell(std::move(how));
    return {.over = true};
  }

  quorum_lease held_;  ///< releases the lease, if this never begins
  const std::shared_ptr<engine::quorum_hold> hold_;
  bool begun_ = false;
  std::optional<engine::quorum_hold::awaited> awaited_;
};

}  // namespace

pending<done> async_release(quorum_lease held) {
  (void)deref(held.hold_);
  auto hold = held.hold_;
  auto first = hold->of().nodes.front()->session();
  return pending<done>(
      std::make_shared<pending_release>(std::move(first), std::move(held), std::move(hold)));
}

}  // namespace holdfast
