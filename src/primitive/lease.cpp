#include <holdfast/both.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/with_lock.hpp>
#include <utility>

#include "base/everlasting.hpp"
#include "base/names.hpp"
#include "lease/hold.hpp"
#include "primitive/release_later.hpp"
#include "session/session_impl.hpp"

namespace holdfast {

using primitive::deref;

lease::lease(std::shared_ptr<engine::hold> hold) noexcept : hold_(std::move(hold)) {}
lease::lease(lease&&) noexcept = default;

// A callback for the loss of the former hold may have put another one here: `next` releases it.
lease& lease::operator=(lease&& other) noexcept {
  if (this == &other) return *this;
  lease next(std::move(other));
  (void)lease(std::move(hold_));
  hold_.swap(next.hold_);
  return *this;
}

lease::~lease() {
  if (hold_) (void)engine::hold::release(std::move(hold_), engine::hold::wants::nothing);
}

std::uint64_t lease::fence() const noexcept { return hold_ ? hold_->fence() : 0; }
std::stop_token lease::lost() const { return deref(hold_).lost_token(); }
lease_state lease::state() const noexcept { return hold_ ? hold_->state() : lease_state::released; }
std::chrono::nanoseconds lease::remaining() const noexcept {
  return hold_ ? hold_->remaining() : std::chrono::nanoseconds{};
}
void lease::check() const { deref(hold_).check(); }
// Here and below: a callback for the loss may release the lease, which empties this object.
void lease::extend() {
  const auto kept = hold_;
  deref(kept).extend_or_throw(std::chrono::milliseconds::zero());
}
const std::string& lease::name() const noexcept {
  return hold_ ? hold_->name() : base::everlasting<std::string>();
}

void lease::extend(std::chrono::milliseconds length) {
  const auto kept = hold_;
  auto& hold = deref(kept);
  if (auto ok = base::check_lease(length); !ok) hold.fail(std::move(ok.error()), "extend");
  hold.extend_or_throw(length);
}

std::string lease::short_id() const {
  return hold_ ? to_string(hold_->owner()).substr(0, 8) : std::string{};
}

status release_status(lease& held) noexcept {
  if (!held) return done{};
  return engine::hold::release(engine::hold::taken_from(held), engine::hold::wants::answer);
}

// A callback about the loss of one lease may destroy `held`.
status release_status(both_leases& held) noexcept {
  lease old = std::move(held.old_), next = std::move(held.next_);
  status how = release_status(next);
  engine::note_release(how, release_status(old));
  return how;
}

std::error_code lease::release() noexcept { return engine::code_of(release_status(*this)); }
std::error_code both_leases::release() noexcept { return engine::code_of(release_status(*this)); }

pending<done> async_release(lease held) {
  auto first = engine::hold::shared_behind(held);
  return primitive::release_later(std::move(first), std::move(held));
}

pending<done> async_release(both_leases held) {
  auto first = engine::hold::shared_behind(held.next());
  return primitive::release_later(std::move(first), std::move(held));
}

namespace {
pending<done> async_extend_to(const lease& held, std::chrono::milliseconds length) {
  const auto hold = engine::hold::shared_behind(held);
  auto session = deref(hold).session();
  auto* const impl = session.get();
  return engine::async_do(
      std::move(session), [hold, impl, length, turn = hold->turn()]() -> status {
        auto extended = hold->extend(length, turn);
        if (extended) return extended;
        return impl->located(std::move(extended.error()), "extend", hold->name());
      });
}
}  // namespace

pending<done> async_extend(const lease& held) {
  return async_extend_to(held, std::chrono::milliseconds::zero());
}

pending<done> async_extend(const lease& held, std::chrono::milliseconds length) {
  auto& hold = deref(engine::hold::shared_behind(held));
  if (auto ok = base::check_lease(length); !ok) hold.fail(std::move(ok.error()), "extend");
  return async_extend_to(held, length);
}

namespace detail {

void require_not_lost(std::error_code released, std::string_view name) {
  if (released != errc::lost) return;
  throw_failure({errc::lost,
                 "the lock was lost before the work under it was over: another holder may have "
                 "worked at the same time",
                 false, "with_lock", std::string(name)});
}

}  // namespace detail

}  // namespace holdfast
