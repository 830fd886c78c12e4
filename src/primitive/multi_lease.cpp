#include <algorithm>
#include <holdfast/multi_lock.hpp>
#include <span>

#include "base/names.hpp"
#include "lease/hold.hpp"
#include "primitive/access.hpp"
#include "primitive/release_later.hpp"

namespace holdfast {

using primitive::deref;

/// The stop source of all members: the first lost member stops it.
struct multi_lease::state_of_all {
  struct pass_on {
    std::stop_source to;
    // A callback may release the lease, which destroys this callback and its owner.
    void operator()() const {
      const std::stop_source kept = to;
      kept.request_stop();
    }
  };

  std::vector<lease> members;
  std::vector<std::shared_ptr<engine::hold>>
      ended;  ///< has room for all members, so release() needs no memory
  std::stop_source lost;
  std::vector<std::unique_ptr<std::stop_callback<pass_on>>> losses;

  explicit state_of_all(std::vector<lease> all) : members(std::move(all)) {
    ended.reserve(members.size());
    losses.reserve(members.size());
    for (const lease& one : members) {
      losses.push_back(std::make_unique<std::stop_callback<pass_on>>(one.lost(), pass_on{lost}));
    }
  }
};

multi_lease::multi_lease() noexcept = default;
multi_lease::multi_lease(std::vector<lease> members)
    : state_(std::make_unique<state_of_all>(std::move(members))) {}
multi_lease::multi_lease(multi_lease&&) noexcept = default;
multi_lease::~multi_lease() { (void)release(); }

multi_lease& multi_lease::operator=(multi_lease&& other) noexcept {
  if (this == &other) return *this;
  (void)release();
  state_ = std::move(other.state_);
  return *this;
}

std::vector<std::uint64_t> multi_lease::fences() const {
  std::vector<std::uint64_t> all;
  if (!state_) return all;
  all.reserve(state_->members.size());
  for (const lease& one : state_->members) all.push_back(one.fence());
  return all;
}

namespace {
bool is_of_a_parent(const lease& one) {
  const auto session = engine::hold::behind(one)->session();
  return session && session->forked();
}
}  // namespace

std::stop_token multi_lease::lost() const {
  if (!state_) return {};
  if (is_of_a_parent(state_->members.front())) return engine::lost_in_a_child();
  return state_->lost.get_token();
}

lease_state multi_lease::state() const noexcept {
  if (!state_) return lease_state::released;
  lease_state worst = lease_state::held;
  for (const lease& one : state_->members) worst = std::max(worst, one.state());
  return worst;
}

std::chrono::nanoseconds multi_lease::remaining() const noexcept {
  if (!state_) return {};
  auto least = std::chrono::nanoseconds::max();
  for (const lease& one : state_->members) least = std::min(least, one.remaining());
  return least;
}

void multi_lease::check() const {
  for (const lease& one : deref(state_).members) one.check();
}

namespace {

/// The holds and their sessions, kept alive: a callback for a loss may release the lease, which
/// empties it.
struct kept_members {
  explicit kept_members(std::span<const lease> members) {
    holds.reserve(members.size());
    sessions.reserve(members.size());
    for (const lease& one : members) {
      holds.push_back(engine::hold::shared_behind(one));
      sessions.push_back(holds.back()->session());
    }
  }
  std::vector<std::shared_ptr<engine::hold>> holds;
  std::vector<std::shared_ptr<engine::session_impl>> sessions;
};

void extend_all(std::span<const lease> members, std::chrono::milliseconds length) {
  const kept_members kept(members);
  for (const auto& hold : kept.holds) hold->extend_or_throw(length);
}

void check_length(const lease& first, std::chrono::milliseconds length) {
  if (auto ok = base::check_lease(length); !ok) {
    engine::hold::shared_behind(first)->fail(std::move(ok.error()), "extend");
  }
}

// Fails if a member is lost: then the whole lease is lost, and the other members must not be
// extended.
pending<done> async_look(std::span<const lease> members) {
  const auto kept = std::make_shared<kept_members>(members);
  return engine::async_do(kept->sessions.front(), [kept]() -> status {
    for (std::size_t i = 0; i < kept->holds.size(); ++i) {
      auto& one = *kept->holds[i];
      if (one.state() != lease_state::lost) continue;
      auto lost = one.extend(std::chrono::milliseconds::zero(), one.turn());
      if (!lost) return kept->sessions[i]->located(std::move(lost.error()), "extend", one.name());
    }
    return done{};
  });
}

template <class Extend>
pending<done> extend_later(std::span<const lease> members, Extend extend) {
  std::vector<pending<done>> all;
  all.reserve(members.size() + 1);
  all.push_back(async_look(members));
  for (const lease& one : members) all.push_back(extend(one));
  return engine::async_in_turn(std::move(all));
}

}  // namespace

void multi_lease::extend() {
  check();
  extend_all(state_->members, std::chrono::milliseconds::zero());
}

void multi_lease::extend(std::chrono::milliseconds length) {
  check();
  check_length(state_->members.front(), length);
  extend_all(state_->members, length);
}

pending<done> async_extend(const multi_lease& held) {
  return extend_later(deref(detail::access::of(held)).members,
                      [](const lease& one) { return async_extend(one); });
}

pending<done> async_extend(const multi_lease& held, std::chrono::milliseconds length) {
  const auto& members = deref(detail::access::of(held)).members;
  check_length(members.front(), length);
  return extend_later(members, [length](const lease& one) { return async_extend(one, length); });
}

// To unregister a callback waits until the callback has returned. A callback that ran in the parent
// at the fork never returns in the child, so the child unregisters none.
status release_status(multi_lease& held) noexcept {
  auto all = std::move(held.state_);
  if (!all) return done{};
  const bool of_a_parent = is_of_a_parent(all->members.front());
  if (!of_a_parent) all->losses.clear();
  for (lease& one : all->members) all->ended.push_back(engine::hold::taken_from(one));
  status how = engine::hold::end_all(all->ended);
  if (of_a_parent) (void)all.release();
  return how;
}

std::error_code multi_lease::release() noexcept { return engine::code_of(release_status(*this)); }

pending<done> async_release(multi_lease held) {
  std::shared_ptr<engine::hold> first;
  if (held) first = engine::hold::shared_behind(detail::access::of(held)->members.front());
  return primitive::release_later(std::move(first), std::move(held));
}

}  // namespace holdfast
