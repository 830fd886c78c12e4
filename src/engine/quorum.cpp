#include "engine/quorum.hpp"

#include <algorithm>

#include "engine/asked_once.hpp"

namespace holdfast::engine {

using namespace std::chrono_literals;
using store::permits_outcome;

namespace {

constexpr std::chrono::nanoseconds first_rest = 50ms;
constexpr std::chrono::nanoseconds longest_rest = 5s;

std::int64_t micros(boot_time t) {
  return std::chrono::duration_cast<std::chrono::microseconds>(t.time_since_epoch()).count();
}

// What the node says about itself: one that forgot a hold must not help another to have it.
status check_trusted(core& session, std::chrono::milliseconds trust_after) {
  const auto who = session.identify();
  if (!who) return who.error();
  if (!who->up_for || *who->up_for >= trust_after) return done{};
  return failure{errc::busy, "the node was started a moment ago, and may have forgotten a hold"};
}

vote vote_of(const result<store::permits_reply>& reply) {
  if (!reply) return reply.error().code == errc::busy ? vote::untrusted : vote::failed;
  const bool yes = reply->outcome == permits_outcome::granted ||
                   reply->outcome == permits_outcome::done ||
                   reply->outcome == permits_outcome::absent;
  return yes ? vote::granted : vote::refused;
}

}  // namespace

bool quorum_node::worth_asking(boot_time now, std::chrono::nanoseconds patience) const {
  const std::lock_guard guard{mutex_};
  const bool hangs = unanswered_ > 0 && now - waiting_since_ >= patience;
  return !hangs && now >= ask_again_at_;
}

void quorum_node::asked(boot_time now) {
  const std::lock_guard guard{mutex_};
  if (unanswered_++ == 0) waiting_since_ = now;
}

void quorum_node::answered(const result<store::permits_reply>& reply, boot_time sent,
                           boot_time now) {
  const std::lock_guard guard{mutex_};
  --unanswered_;
  waiting_since_ = now;
  if (!reply) {
    const auto rest = std::min(first_rest * (1 << std::min(failures_++, 8U)), longest_rest);
    ask_again_at_ = reply.error().code == errc::unavailable ? now + rest : now;
    return;
  }
  failures_ = 0;
  ask_again_at_ = now;
  if (reply->wall_at > 0) wall_ahead_ = reply->wall_at - micros(sent);
}

// A little more: so that the question is there before that time is.
std::int64_t quorum_node::wall_at(boot_time now) const {
  constexpr std::int64_t on_its_way = 500;
  const std::lock_guard guard{mutex_};
  return wall_ahead_ == 0 ? 0 : micros(now) + wall_ahead_ + on_its_way;
}

std::size_t count(const quorum_round::answers& all, vote v) {
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [&](const auto& a) { return a.said == v; }));
}

void quorum_round::ask(std::size_t node, const store::permits_command& c,
                       std::shared_ptr<const void> keeps, bool trusted_only) {
  const auto& to = quorum_->nodes[node];
  {
    const std::lock_guard guard{mutex_};
    answers_[node].said = vote::silent;
    ++outstanding_;
  }
  to->asked(quorum_->now());
  asked_once::allowed may;
  if (trusted_only && quorum_->trust_after > 0ms) {
    may = [session = to->session().get(), after = quorum_->trust_after] {
      return check_trusted(*session, after);
    };
  }
  asked_once::begin(
      to->session(), to->what()->name, c, std::move(keeps),
      [self = shared_from_this(), node](result<store::permits_reply> reply, boot_time sent) {
        self->on_answer(node, std::move(reply), sent);
      },
      std::move(may));
}

void quorum_round::on_answer(std::size_t node, result<store::permits_reply> reply, boot_time sent) {
  quorum_->nodes[node]->answered(reply, sent, quorum_->now());
  answer a{vote_of(reply), {}, sent, {}};
  if (reply) {
    a.reply = std::move(*reply);
  } else {
    a.why = std::move(reply.error());
  }
  if (each_) each_(node, a);
  const std::lock_guard guard{mutex_};
  answers_[node] = std::move(a);
  --outstanding_;
  changed_.notify_all();
}

quorum_round::answers quorum_round::wait(boot_time until,
                                         const std::function<bool(const answers&)>& enough) {
  auto& clock = quorum_->first().clock();
  std::unique_lock lock{mutex_};
  while (outstanding_ > 0 && clock.now() < until && !enough(answers_)) {
    clock.wait_until(lock, changed_, until);
  }
  return answers_;
}

}  // namespace holdfast::engine
