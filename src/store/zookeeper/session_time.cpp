#include "store/zookeeper/session_time.hpp"

#include <algorithm>

namespace holdfast::store::zookeeper {

namespace {

using span = session_time::span;

/// The connected member tells the leader twice a tick which sessions it has heard, and the shortest
/// session that a server allows by default has two ticks.
constexpr span told_within(span session) { return session / 4; }

/// The longest silence before a request after which it still counts from its sending.
constexpr span quiet_for(span session) { return session / 3; }

/// Requests at this interval have been answered, and reported to the leader, before that is needed,
/// if an answer takes no longer than an eighth of the session.
constexpr span speaks_each(span session) { return session / 6; }

/// An answer that arrives within this time after the previous one is not noted.
constexpr span noted_each(span session) { return session / 32; }

}  // namespace

// The leader learns of the session itself when it begins, and that is later.
session_time::session_time(const clock& on, span session)
    : clock_(&on), session_(session), last_said_(on.now()), known_(last_said_) {}

void session_time::agreed(span session) noexcept {
  const std::lock_guard guard{mutex_};
  session_ = session;
}

span session_time::session() const noexcept {
  const std::lock_guard guard{mutex_};
  return session_;
}

boot_time session_time::sent(boot_time now) noexcept {
  const std::lock_guard guard{mutex_};
  last_said_ = std::max(last_said_, now);
  for (; first_ != end_ && pending_[first_ % most_pending].known_at <= now; ++first_) {
    known_ = std::max(known_, pending_[first_ % most_pending].said);
  }
  return std::min(now, known_ + told_within(session_) + quiet_for(session_));
}

void session_time::answered(boot_time sent) noexcept {
  const std::lock_guard guard{mutex_};
  if (clock_ == nullptr || end_ - first_ == most_pending) return;
  const word heard{sent, clock_->now() + told_within(session_)};
  if (end_ != first_) {
    const word& before = pending_[(end_ - 1) % most_pending];
    if (sent <= before.said || heard.known_at < before.known_at + noted_each(session_)) return;
  }
  pending_[end_++ % most_pending] = heard;
}

void session_time::proved(boot_time counts_from) noexcept {
  const std::lock_guard guard{mutex_};
  proven_ = std::max(proven_, counts_from);
}

// The rest of a session, 1 - 1/3 - 1/4 of it, and a little less.
span session_time::safe_span() const noexcept {
  const std::lock_guard guard{mutex_};
  return session_ * 2 / 5;
}

boot_time session_time::safe_until() const noexcept {
  const std::lock_guard guard{mutex_};
  return proven_ + session_ * 2 / 5;
}

boot_time session_time::speaks_at() const noexcept {
  const std::lock_guard guard{mutex_};
  return last_said_ + speaks_each(session_);
}

void session_time::end() noexcept {
  const std::lock_guard guard{mutex_};
  clock_ = nullptr;
}

}  // namespace holdfast::store::zookeeper
