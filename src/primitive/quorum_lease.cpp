#include <holdfast/redlock.hpp>

#include "quorum/quorum_hold.hpp"

namespace holdfast {

namespace {
const engine::quorum_hold& deref(const std::shared_ptr<engine::quorum_hold>& hold) {
  if (!hold) throw_failure({errc::not_owner, "this lease is empty: it was released or moved from"});
  return *hold;
}
}  // namespace

quorum_lease::quorum_lease(std::shared_ptr<engine::quorum_hold> hold) noexcept
    : hold_(std::move(hold)) {}
quorum_lease::quorum_lease(quorum_lease&&) noexcept = default;
quorum_lease::~quorum_lease() { (void)release(); }

quorum_lease& quorum_lease::operator=(quorum_lease&& other) noexcept {
  if (this == &other) return *this;
  (void)release();
  hold_ = std::move(other.hold_);
  return *this;
}

std::uint64_t quorum_lease::fence() const noexcept { return hold_ ? hold_->fence() : 0; }
// A callback on the loss may release, which empties this lease.
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
std::vector<vote> quorum_lease::votes() const { return deref(hold_).votes(); }

void quorum_lease::check() const {
  const auto& hold = deref(hold_);
  const auto so = hold.state();
  if (so == lease_state::held || so == lease_state::suspect) return;
  throw_failure(hold.of().first().located(
      {errc::lost,
       "no majority renewed it in time, somebody else may hold it: stop the work, its resource "
       "must refuse this fence"},
      "check", hold.of().name));
}

std::error_code quorum_lease::release() noexcept {
  const auto hold = std::move(hold_);
  return hold ? hold->release() : std::error_code{};
}

}  // namespace holdfast
