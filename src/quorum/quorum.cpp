#include "quorum/quorum.hpp"

#include <algorithm>
#include <holdfast/store/micros.hpp>

#include "session/no_memory.hpp"

namespace holdfast::engine {

using namespace std::chrono_literals;
using store::micros;

namespace {

constexpr std::chrono::nanoseconds first_rest = 50ms;
constexpr std::chrono::nanoseconds longest_rest = 5s;

}  // namespace

bool quorum_node::worth_asking(boot_time now, std::chrono::nanoseconds patience) const {
  if (hangs(now, patience)) return false;
  const std::lock_guard guard{mutex_};
  return now >= ask_again_at_;
}

bool quorum_node::hangs(boot_time now, std::chrono::nanoseconds patience) const {
  const std::lock_guard guard{mutex_};
  return unanswered_ > 0 && now - waiting_since_ >= patience;
}

bool quorum_node::fails() const {
  const std::lock_guard guard{mutex_};
  return failures_ > 0;
}

void quorum_node::asked(boot_time now) {
  const std::lock_guard guard{mutex_};
  if (unanswered_++ == 0) waiting_since_ = now;
}

void quorum_node::catch_up() const { session_->collect(); }

void quorum_node::given_to_runner() {
  const std::lock_guard guard{mutex_};
  ++with_runner_;
}

void quorum_node::answered_by_runner() {
  const std::lock_guard guard{mutex_};
  --with_runner_;
}

bool quorum_node::may_post() const {
  const std::lock_guard guard{mutex_};
  return with_runner_ == 0 && failures_ == 0;
}

void quorum_node::answered(const result<store::permits_reply>& reply, boot_time sent,
                           boot_time now) {
  const std::lock_guard guard{mutex_};
  --unanswered_;
  waiting_since_ = now;
  if (!reply) {
    const auto rest = std::min(first_rest * (1 << std::min(failures_++, 8U)), longest_rest);
    ask_again_at_ = went_unanswered(reply.error()) ? now + rest : boot_time{};
    return;
  }
  failures_ = 0;
  // Not `now`: a vote that begins at this moment may have read the clock before.
  ask_again_at_ = {};
  if (reply->wall_at > 0) wall_ahead_ = reply->wall_at - micros(sent);
}

// Adds a little, so that the request arrives before that time.
std::int64_t quorum_node::wall_at(boot_time now) const {
  constexpr std::int64_t on_its_way = 500;
  const std::lock_guard guard{mutex_};
  return wall_ahead_ == 0 ? 0 : micros(now) + wall_ahead_ + on_its_way;
}

std::size_t count(const quorum_round::answers& all, vote v) {
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [&](const auto& a) { return a.said == v; }));
}

}  // namespace holdfast::engine
