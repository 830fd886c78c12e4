#include "store/etcd/session_lease.hpp"

#include <etcd/etcd.pb.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "store/etcd/requests.hpp"

namespace holdfast::store::etcd {

namespace {

using namespace std::chrono_literals;

/// An unanswered request is repeated after this time.
constexpr auto ask_again = std::chrono::nanoseconds(500ms);

std::int64_t whole_seconds(std::chrono::milliseconds d) {
  return std::chrono::ceil<std::chrono::seconds>(d).count();
}

}  // namespace

result<std::shared_ptr<session_lease>> session_lease::grant(channel& to,
                                                            std::function<void()> on_end) {
  auto& on = *to.options().clock;
  wire::LeaseGrantRequest request;
  request.set_ttl(whole_seconds(to.options().session));
  wire::LeaseGrantResponse answer;
  const boot_time sent = on.now();
  if (auto ok = to.call(method::grant, request, answer); !ok) return std::move(ok.error());
  std::shared_ptr<session_lease> lease(new session_lease(to, std::move(on_end)));
  lease->id_ = answer.id();
  lease->ttl_ = std::chrono::seconds(answer.ttl());
  lease->last_ = {sent, on.now(), answer.header().raft_term()};
  lease->proven_ = sent;  // a majority agreed to it
  try {
    lease->thread_ = std::thread([l = lease.get()] { l->keep(); });
  } catch (const std::exception& e) {
    return failure{errc::unavailable,
                   std::string("no thread to keep the session alive: ") + e.what()};
  }
  return lease;
}

session_lease::~session_lease() {
  {
    const std::lock_guard guard{mutex_};
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  if (over_) return;
  wire::LeaseRevokeRequest request;
  request.set_id(id_);
  wire::LeaseRevokeResponse answer;
  (void)to_.call(method::revoke, request, answer);
}

void session_lease::end() {
  if (!over_.exchange(true)) on_end_();
}

void session_lease::agreed(std::uint64_t term, boot_time asked) noexcept {
  const std::lock_guard guard{mutex_};
  if (term == last_.term && asked >= last_.answered) proven_ = std::max(proven_, last_.sent);
}

session_lease::history session_lease::seen() const noexcept {
  const std::lock_guard guard{mutex_};
  return seen_;
}

void session_lease::goes(const history& now, const history& before) {
  if (now.is_before(before)) return end();
  const std::lock_guard guard{mutex_};
  seen_ = {std::max(seen_.term, now.term), std::max(seen_.revision, now.revision)};
}

// A member answers a keep-alive with its own history, and may lag behind the others. And after an
// election this request proves the renewal: the next request of a lock may come in yet another
// term, and the session would distrust a lease that lives.
void session_lease::ask_how_far(const history& before) {
  const boot_time asked = to_.options().clock->now();
  auto look = all_below(to_.options().base + "/");
  look.set_limit(1);
  look.set_keys_only(true);
  wire::RangeResponse answer;
  if (!to_.call(method::range, look, answer)) return;
  goes({answer.header().raft_term(), answer.header().revision()}, before);
  agreed(answer.header().raft_term(), asked);
}

boot_time session_lease::safe_until() const noexcept {
  const std::lock_guard guard{mutex_};
  return proven_ + ttl_ * 3 / 4;
}

// Returns true if the request was answered. A leader that was just elected may not have applied the
// grant of a lease that lives, and answers that it knows no such lease (etcd's issue 13675). So a
// lease is over only if it is unknown twice in a row.
bool session_lease::keep_alive() {
  auto& on = *to_.options().clock;
  wire::LeaseKeepAliveRequest request;
  request.set_id(id_);
  wire::LeaseKeepAliveResponse answer;
  const history before = seen();
  const boot_time sent = on.now();
  const auto ok = to_.call(method::keep_alive, request, answer);
  if (!ok && ok.error().code != errc::lost) return false;
  const bool unknown = !ok || answer.ttl() <= 0;
  const bool unknown_before = std::exchange(unknown_, unknown);
  if (unknown) return unknown_before && (end(), true);
  const auto& header = answer.header();
  const bool behind = history{header.raft_term(), header.revision()}.is_before(before);
  std::unique_lock lock{mutex_};
  const auto former = std::exchange(last_, {sent, on.now(), header.raft_term()});
  lock.unlock();
  if (behind || former.term != header.raft_term()) ask_how_far(before);
  return true;
}

void session_lease::keep() {
  auto& on = *to_.options().clock;
  boot_time next = on.now() + ttl_ / 8;
  std::unique_lock lock{mutex_};
  while (!stopping_ && !over_) {
    if (on.now() < next) {
      on.wait_until(lock, changed_, next);
      continue;
    }
    lock.unlock();
    bool answered = false;
    try {
      answered = keep_alive();
    } catch (...) {
      answered = false;  // no memory: repeated soon
    }
    next = on.now() + (answered ? ttl_ / 8 : std::min(ttl_ / 8, ask_again));
    lock.lock();
  }
}

}  // namespace holdfast::store::etcd
