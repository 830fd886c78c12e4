#include "primitive/redlock_wait.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace holdfast::primitive {

using namespace std::chrono_literals;
using engine::quorum_hold;

namespace {

constexpr auto longest_pause = 250ms;

std::string in_words(const std::vector<vote>& votes) {
  std::string words;
  for (const vote v : votes) words += (words.empty() ? "" : ", ") + std::string(to_string(v));
  return words;
}

std::chrono::nanoseconds random_part(std::chrono::nanoseconds of) {
  return std::chrono::nanoseconds(engine::jitter(static_cast<std::uint64_t>(of.count())));
}

/// When to vote again; the last vote is early enough to end before the deadline.
boot_time next_vote(boot_time now, std::chrono::nanoseconds pause, std::chrono::nanoseconds took,
                    boot_time deadline) {
  if (deadline - now > pause) return now + pause;
  const boot_time last = deadline - 2 * std::max<std::chrono::nanoseconds>(took, 1ms);
  return last > now ? last : deadline;
}

}  // namespace

void votes_of_redlock::fail(failure f) const {
  throw_failure(nodes->first().located(std::move(f), operation, nodes->name));
}

void votes_of_redlock::require_usable() const {
  if (auto can = nodes->first().usable(); !can) fail(std::move(can.error()));
}

status votes_of_redlock::make_ready() const {
  for (const auto& node : nodes->nodes) {
    if (auto can = engine::ready(*node->session(), *node->what(), {}); !can) return can;
  }
  return renewer->start();
}

std::chrono::nanoseconds votes_of_redlock::patience(wait_time wait) const {
  if (wait == no_limit || wait == one_try) return nodes->patience;
  const auto part = wait / static_cast<std::int64_t>(nodes->nodes.size());
  return std::clamp<std::chrono::nanoseconds>(
      part, 1ms, std::max<std::chrono::nanoseconds>(nodes->patience, 1ms));
}

failure votes_of_redlock::gave_up(const engine::time_frame& asked, failure why) const {
  return engine::gave_up(nodes->first(), *nodes->nodes.front()->what(), asked, std::move(why));
}

void votes_of_redlock::note(std::vector<vote> votes) {
  const std::lock_guard guard{mutex};
  last.swap(votes);
}

std::chrono::nanoseconds pauses_between_votes::after(const std::vector<vote>& votes,
                                                     std::chrono::nanoseconds took) {
  const bool split = std::count(votes.begin(), votes.end(), vote::granted) > 0;
  if (split) {
    const auto base = std::max<std::chrono::nanoseconds>(std::min(took, patience_), 100us);
    const auto most = std::max<std::chrono::nanoseconds>(longest_pause, 2 * base);
    return random_part(std::min(base * (2 << std::min(splits_++, 4U)), most));
  }
  splits_ = 0;
  const auto most =
      std::min<std::chrono::nanoseconds>(5ms * (1 << std::min(refusals_++, 6U)), longest_pause);
  return most * 3 / 4 + random_part(most / 4);
}

redlock_wait::redlock_wait(std::shared_ptr<votes_of_redlock> of,
                           std::optional<std::chrono::milliseconds> lease,
                           const engine::time_frame& asked, engine::quorum_round::news news)
    : of_(std::move(of)),
      lease_(lease),
      asked_(asked),
      news_(std::move(news)),
      sleeper_(news_ ? nullptr : std::make_shared<engine::sleeper>(of_->nodes->first().clock())),
      time_{of_->patience(asked.wait()), asked.is_try() ? forever : asked.deadline(),
            asked.began()},
      pause_(time_.each) {}

redlock_wait::ended redlock_wait::step(bool stopped) {
  switch (stage_) {
    case stage::begins:
      if (stopped) return stopped_in_vain();
      until_ = of_->distinct->ask(
          time_.deadline,
          news_ ? news_ : engine::quorum_round::news([me = sleeper_] { me->wake(); }));
      stage_ = stage::asks_who_they_are;
      [[fallthrough]];
    case stage::asks_who_they_are:
      if (stopped) return stopped_in_vain();
      if (!of_->distinct->all_heard() && of_->nodes->now() < until_) return std::nullopt;
      if (auto ok = of_->distinct->verdict(); !ok)
        return of_->gave_up(asked_, std::move(ok.error()));
      return vote();
    case stage::votes:
      return go_on(stopped);
    default:
      return after_pause(stopped);
  }
}

redlock_wait::ended redlock_wait::vote() {
  vote_began_ = of_->nodes->now();
  hold_ = std::make_shared<quorum_hold>(of_->nodes, lease_.value_or(of_->lease), !lease_);
  ++of_->attempts;
  stage_ = stage::votes;
  awaited_ = hold_->begin_vote(time_, news_);
  return go_on(false);
}

// A finished round is evaluated even if a stop was requested: it may have won.
redlock_wait::ended redlock_wait::go_on(bool stopped) {
  while (awaited_) {
    if (awaited_->is_over(of_->nodes->now())) {
      awaited_ = hold_->go_on(*std::exchange(awaited_, std::nullopt));
      continue;
    }
    if (!stopped || broken_off_) return std::nullopt;
    broken_off_ = true;
    const boot_time soon = saturated_add(of_->nodes->now(), engine::last_answer_within);
    awaited_ = hold_->break_off(*std::exchange(awaited_, std::nullopt), soon);
  }
  return count_votes(stopped);
}

redlock_wait::ended redlock_wait::count_votes(bool stopped) {
  of_->note(hold_->votes());
  if (hold_->won()) {
    hold_->keep(of_->renewer);
    return std::exchange(hold_, nullptr);
  }
  if (auto why = hold_->hopeless()) return of_->gave_up(asked_, std::move(*why));
  if (stopped) return stopped_in_vain();
  auto& first = of_->nodes->first();
  const boot_time now = first.now();
  const auto reached = hold_->reached();
  const bool enough = reached == quorum_hold::reach::enough;
  if (enough) give_up_ = forever;
  if (!enough && give_up_ == forever) {
    const auto least = reached == quorum_hold::reach::unclear ? of_->nodes->patience : 0ns;
    give_up_ =
        saturated_add(now, std::max(saturated_nanoseconds(first.options().store_timeout), least));
  }
  if (!goes_on(now)) return in_vain();
  const auto took = now - vote_began_;
  until_ = next_vote(now, pause_.after(hold_->votes(), took), took, asked_.deadline());
  stage_ = stage::pauses;
  return std::nullopt;
}

redlock_wait::ended redlock_wait::after_pause(bool stopped) {
  if (stopped) return stopped_in_vain();
  const boot_time now = of_->nodes->now();
  if (now < until_) return std::nullopt;
  return goes_on(now) ? vote() : in_vain();
}

bool redlock_wait::goes_on(boot_time now) const {
  const boot_time deadline = asked_.deadline();
  return now < deadline && (deadline != forever || now < give_up_);
}

// Nodes that failed before, and were not waited for in any vote since, are away when they have had
// their time: each vote asks them again.
redlock_wait::ended redlock_wait::in_vain() {
  const auto reached = hold_->reached();
  const bool away = reached == quorum_hold::reach::too_few ||
                    (reached == quorum_hold::reach::unclear && of_->nodes->now() >= give_up_);
  return of_->gave_up(asked_, away ? unavailable() : engine::waited_in_vain(asked_.is_try()));
}

redlock_wait::ended redlock_wait::stopped_in_vain() {
  return of_->gave_up(asked_, engine::asked_to_stop());
}

failure redlock_wait::unavailable() const {
  const auto votes = hold_->votes();
  const auto& said = hold_->first_failure();
  return {errc::unavailable,
          "too few of " + std::to_string(votes.size()) + " nodes answer for a majority (" +
              in_words(votes) + "): " + (said.empty() ? said : "one failed with: " + said + "; ") +
              "bring them back, or look at redlock_options::node_timeout",
          true};
}

boot_time redlock_wait::until() const { return awaited_ ? awaited_->until : until_; }

// A round that is broken off is waited for until its own end, which is near.
void redlock_wait::wait(const std::stop_token& stop) const {
  if (awaited_) return awaited_->wait(broken_off_ ? std::stop_token{} : stop);
  const std::stop_callback on_stop{stop, [this] { sleeper_->wake(); }};
  sleeper_->sleep(until_);
}

// An awaited round may still acquire the lock: whatever it acquires is released.
void redlock_wait::abandon() noexcept {
  awaited_.reset();
  if (const auto hold = std::move(hold_)) hold->let_go();
}

}  // namespace holdfast::primitive
