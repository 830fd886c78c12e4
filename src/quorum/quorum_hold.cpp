#include "quorum/quorum_hold.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace holdfast::engine {

using namespace std::chrono_literals;
using store::permits_outcome;
using store::permits_verb;
using asked = quorum_round::asked;

namespace {

bool is_mismatch(const quorum_round::answer& a) {
  return a.said == holdfast::vote::refused &&
         (a.reply.outcome == permits_outcome::kind_mismatch ||
          a.reply.outcome == permits_outcome::capacity_mismatch);
}

}  // namespace

quorum_hold::quorum_hold(std::shared_ptr<const quorum> of, std::chrono::milliseconds lease,
                         bool renew)
    : quorum_(std::move(of)),
      lease_(lease),
      renew_(renew),
      owner_(quorum_->first().ids().next()),
      asked_(quorum_->nodes.size()),
      votes_(quorum_->nodes.size(), holdfast::vote::skipped) {}

// ---- to get it
// -----------------------------------------------------------------------------------

store::permits_command quorum_hold::grant_command(const quorum_node& at,
                                                  std::uint64_t at_least) const {
  auto c = acquire_command(*at.session(), *at.what(), {}, owner_, false);
  c.lease_us = std::chrono::microseconds(lease_).count();
  c.fence_at_least = at_least;
  return c;
}

// Those that fail are left alone for a while, as long as a majority is there without them.
std::vector<std::size_t> quorum_hold::worth_asking() const {
  std::vector<std::size_t> all, some;
  all.reserve(quorum_->nodes.size());
  some.reserve(quorum_->nodes.size());
  const boot_time now = quorum_->now();
  for (std::size_t i = 0; i < quorum_->nodes.size(); ++i) {
    quorum_->nodes[i]->catch_up();
    all.push_back(i);
    if (quorum_->nodes[i]->worth_asking(now, quorum_->patience)) some.push_back(i);
  }
  return some.size() >= quorum_->majority() ? some : all;
}

// Each is told what time the fastest clock shows: then all grant the same fence, and a second round
// is seldom needed.
quorum_hold::answers quorum_hold::ask_for_grants(const vote_time& time) {
  const auto to = worth_asking();
  std::int64_t proposal = 0;
  for (const auto& node : quorum_->nodes) {
    proposal = std::max(proposal, node->wall_at(quorum_->now()));
  }
  const auto round = std::make_shared<quorum_round>(quorum_, nullptr);
  const auto ask = [&](std::size_t i) {
    asked_[i] = true;
    const auto& node = *quorum_->nodes[i];
    round->ask(i, grant_command(node, static_cast<std::uint64_t>(proposal)), node.what(),
               asked::of_trusted);
  };
  const std::size_t majority = quorum_->majority();
  const auto decided = [&](const answers& so_far) {
    const auto granted = count(so_far, holdfast::vote::granted);
    return granted >= majority || granted + count(so_far, holdfast::vote::silent) < majority;
  };
  const boot_time until = time.until(quorum_->now());
  std::for_each(to.begin(), to.end(), ask);
  auto votes = round->wait(until, decided);
  // If it is for those that were left alone to decide, they may be well again.
  const auto granted = count(votes, holdfast::vote::granted);
  const auto left_alone = count(votes, holdfast::vote::skipped);
  const auto open = count(votes, holdfast::vote::silent) + left_alone;
  if (left_alone == 0 || granted >= majority || granted + open < majority) return votes;
  const boot_time again_until = time.until(quorum_->now());
  for (std::size_t i = 0; i < votes.size(); ++i) {
    if (votes[i].said == holdfast::vote::skipped) ask(i);
  }
  return round->wait(again_until, decided);
}

// A later majority shares a node with this one: if each of this one knows the greatest fence, the
// later one's is greater, whatever the clocks of the nodes are.
bool quorum_hold::agree_on_fence(answers& votes, const vote_time& time) {
  for (const auto& a : votes) {
    if (a.said == holdfast::vote::granted) fence_ = std::max(fence_, a.reply.fence);
  }
  const auto knows = [&](const answer& a) {
    return a.said == holdfast::vote::granted && a.reply.fence == fence_;
  };
  const auto enough = [&](const answers& all) {
    const auto those = std::count_if(all.begin(), all.end(), knows);
    return static_cast<std::size_t>(those) >= quorum_->majority();
  };
  if (enough(votes)) return true;
  const boot_time until = time.until(quorum_->now());
  const auto round = std::make_shared<quorum_round>(quorum_, nullptr);
  for (std::size_t i = 0; i < votes.size(); ++i) {
    if (votes[i].said != holdfast::vote::granted || knows(votes[i])) continue;
    const auto& node = *quorum_->nodes[i];
    round->ask(i, grant_command(node, fence_), node.what(), asked::of_trusted);
  }
  const auto merged = [&](const answers& learned) {
    auto all = votes;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (learned[i].said != holdfast::vote::skipped) all[i] = learned[i];
    }
    return all;
  };
  votes = merged(round->wait(until, [&](const answers& l) { return enough(merged(l)); }));
  return enough(votes);
}

bool quorum_hold::vote(const vote_time& time) try {
  return vote_for(time);
} catch (...) {  // no memory
  give_back_later();
  throw;
}

bool quorum_hold::vote_for(const vote_time& time) {
  const boot_time began = quorum_->now();
  auto votes = ask_for_grants(time);
  const bool granted = count(votes, holdfast::vote::granted) >= quorum_->majority();
  if (!granted || !agree_on_fence(votes, time)) return fail(votes, began, time);
  std::chrono::nanoseconds lasts = lease_;
  for (const auto& a : votes) {
    if (a.said == holdfast::vote::granted)
      lasts = std::min<std::chrono::nanoseconds>(lasts, lease_of(a.reply));
  }
  const boot_time now = quorum_->now();
  const boot_time valid_until = lease_timer::sure_until(began, lasts);
  if (valid_until <= now) return fail(votes, began, time);
  note(votes);
  began_ = time.began;
  since_ = now;
  timer_.emplace(lease_timer::terms{lease_, renew_, forever}, now, valid_until);
  tell(event_kind::acquired);
  return true;
}

void quorum_hold::note(const answers& votes) {
  const std::lock_guard guard{mutex_};
  for (std::size_t i = 0; i < votes.size(); ++i) votes_[i] = votes[i].said;
}

// One that was not waited for, because the others had decided or the time was up, is not away: not
// before its time to answer is over, however short the caller's is.
bool quorum_hold::had_no_time(const answers& votes, std::size_t node, boot_time began) const {
  const boot_time now = quorum_->now();
  return votes[node].said == holdfast::vote::silent && now - began < quorum_->patience &&
         !quorum_->nodes[node]->hangs(now, quorum_->patience);
}

// Waits for the nodes that answered: the next request must not find what is left of this one.
bool quorum_hold::fail(const answers& votes, boot_time began, const vote_time& time) {
  note(votes);
  std::vector<bool> answered;
  answered.reserve(votes.size());
  std::size_t others = 0, there = 0;
  for (std::size_t i = 0; i < votes.size(); ++i) {
    const auto said = votes[i].said;
    // One node's is a vote like others, unless without those that say so there is no majority.
    if (is_mismatch(votes[i]) && votes.size() - ++others < quorum_->majority())
      hopeless_ = mismatch_of(votes[i].reply, *quorum_->nodes.front()->what());
    if (first_failure_.empty()) first_failure_ = votes[i].why.what;
    const bool voted = said == holdfast::vote::granted || said == holdfast::vote::refused;
    there += voted || had_no_time(votes, i, began);
    answered.push_back(voted || said == holdfast::vote::untrusted);
  }
  too_few_answered_ = there < quorum_->majority();
  (void)give_back(time, answered);
  return false;
}

std::optional<failure> quorum_hold::hopeless() const { return hopeless_; }

// Also where no answer came: it goes behind the request, and if it fails the keeper tries again.
quorum_hold::answers quorum_hold::give_back(const vote_time& time,
                                            const std::vector<bool>& wait_for) {
  const auto round = std::make_shared<quorum_round>(
      quorum_, [q = quorum_, owner = owner_, lease = lease_](std::size_t i, const answer& a) {
        const auto& node = *q->nodes[i];
        if (a.said == holdfast::vote::failed)
          node.session()->keeper().abandon(node.what()->name, owner, lease);
      });
  const auto c = release_command(owner_);
  const boot_time until = time.until(quorum_->now());
  {
    const std::lock_guard guard{asking_};
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      if (asked_[i]) round->ask(i, c, nullptr);
    }
  }
  return round->wait(until, [&](const answers& so_far) {
    for (std::size_t i = 0; i < so_far.size(); ++i) {
      if (wait_for[i] && so_far[i].said == holdfast::vote::silent) return false;
    }
    return true;
  });
}

// ---- to keep it
// ----------------------------------------------------------------------------------

void quorum_hold::keep(std::shared_ptr<quorum_renewer> by) {
  renewer_ = std::move(by);
  renewer_->add(weak_from_this());
}

// A round that some have not answered in time has failed: the nodes that answered are asked anew.
boot_time quorum_hold::look_after() {
  std::unique_lock lock{mutex_};
  if (released_) return forever;
  const boot_time now = quorum_->now();
  const auto step = timer_->due(now);
  const bool over = timer_->state() == lease_state::lost;
  const bool in_vain = !over && (step == lease_timer::step::suspect || now >= round_until_);
  if (over || in_vain) {
    ++round_;  // what still comes of the last one is too late
    round_until_ = forever;
  }
  if (in_vain) (void)timer_->failed(now);
  lock.unlock();
  if (step == lease_timer::step::renew) renew();
  if (in_vain) tell(event_kind::renew_failed);
  if (step == lease_timer::step::suspect) tell(event_kind::suspect);
  if (step == lease_timer::step::lost) tell_lost();
  lock.lock();
  return released_ ? forever : std::min(timer_->next(), round_until_);
}

// Once, by the thread that finds it out first.
void quorum_hold::tell_lost() {
  {
    const std::lock_guard guard{mutex_};
    if (std::exchange(told_lost_, true)) return;
  }
  lost_.request_stop();
  tell(event_kind::lost);
}

namespace {

/// The votes that come while one asks, on its own thread: of nodes that cannot be asked at all.
/// They are counted when all have been asked, because the observer that is told of it may release.
class early_votes {
 public:
  explicit early_votes(std::size_t nodes) { all_.reserve(nodes); }
  bool take(std::size_t node, holdfast::vote said) noexcept {
    if (std::this_thread::get_id() != asks_ || asked_) return false;
    all_.emplace_back(node, said);
    return true;
  }
  const std::vector<std::pair<std::size_t, holdfast::vote>>& all_asked() noexcept {
    asked_ = true;
    return all_;
  }

 private:
  const std::thread::id asks_ = std::this_thread::get_id();
  bool asked_ = false;  // only that thread looks at it
  std::vector<std::pair<std::size_t, holdfast::vote>> all_;
};

}  // namespace

// An acquire, not a renewal: on a node that forgot it, it is had again, with the fence. Also of
// those that failed a moment ago: the lease runs.
void quorum_hold::renew() {
  const auto early = std::make_shared<early_votes>(quorum_->nodes.size());
  std::unique_lock asking{asking_};
  std::unique_lock lock{mutex_};
  if (released_) return;
  const std::uint64_t number = ++round_;
  round_sent_ = quorum_->now();
  round_until_ = saturated_add(round_sent_, lease_ / 6);
  yes_ = no_ = 0;
  asked_.assign(asked_.size(), true);
  lock.unlock();
  const auto round = std::make_shared<quorum_round>(
      quorum_, [self = weak_from_this(), number, early](std::size_t i, const answer& a) {
        if (early->take(i, a.said)) return;
        if (const auto hold = self.lock()) hold->on_renewal(number, i, a.said);
      });
  for (std::size_t i = 0; i < quorum_->nodes.size(); ++i) {
    const auto& node = *quorum_->nodes[i];
    round->ask(i, grant_command(node, fence_), node.what(), asked::without_wait);
  }
  asking.unlock();
  for (const auto& [node, said] : early->all_asked()) on_renewal(number, node, said);
}

void quorum_hold::on_renewal(std::uint64_t round, std::size_t node, holdfast::vote said) {
  std::unique_lock lock{mutex_};
  if (round != round_ || released_) return;
  votes_[node] = said;
  const bool granted = said == holdfast::vote::granted;
  ++(granted ? yes_ : no_);
  const boot_time now = quorum_->now();
  const bool enough = granted && yes_ == quorum_->majority();
  const bool in_vain =
      !granted && yes_ < quorum_->majority() && votes_.size() - no_ + 1 == quorum_->majority();
  bool changed = false;
  const auto margin = timer_->valid_until() - now;
  if (enough || in_vain) round_until_ = forever;
  if (enough) changed = timer_->renewed(now, round_sent_, lease_);
  if (in_vain) changed = timer_->failed(now);
  lock.unlock();
  if (!enough && !in_vain) return;
  if (in_vain) tell(event_kind::renew_failed);
  if (enough && margin > margin.zero())
    tell(changed ? event_kind::held_again : event_kind::renewed, margin);
  if (in_vain && changed) tell(event_kind::suspect);
  renewer_->wake();
}

// ---- to give it back
// -----------------------------------------------------------------------------

std::error_code quorum_hold::release() noexcept {
  if (quorum_->first().forked()) return errc::forked;
  std::unique_lock lock{mutex_};
  if (std::exchange(released_, true)) return {};
  const bool was_lost =
      timer_->state() == lease_state::lost || quorum_->now() >= timer_->valid_until();
  lock.unlock();
  try {
    return give_back_now(was_lost);
  } catch (...) {
    give_back_later();
    if (was_lost) return tell_lost(), errc::lost;
    tell(event_kind::release_failed);
    return errc::unavailable;
  }
}

std::error_code quorum_hold::give_back_now(bool was_lost) {
  std::vector<bool> wait_for;
  for (const auto v : votes()) wait_for.push_back(v == holdfast::vote::granted);
  const auto said = give_back({quorum_->patience}, wait_for);
  if (was_lost) return tell_lost(), errc::lost;
  const bool told = count(said, holdfast::vote::granted) >= quorum_->majority();
  tell(told ? event_kind::released : event_kind::release_failed);
  return told ? std::error_code{} : errc::unavailable;
}

// Where there was no memory for it: behind what has been asked, as long as that takes.
void quorum_hold::give_back_later() noexcept {
  try {
    const std::vector<bool> for_nobody(quorum_->nodes.size());
    (void)give_back({}, for_nobody);
  } catch (...) {
    // No memory for that either.
  }
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    const auto& node = *quorum_->nodes[i];
    if (asked_[i]) node.session()->keeper().abandon(node.what()->name, owner_, lease_);
  }
}

lease_state quorum_hold::state() const {
  if (quorum_->first().forked()) return lease_state::lost;  // the mutex may be the parent's
  const std::lock_guard guard{mutex_};
  if (released_) return lease_state::released;
  return quorum_->now() < timer_->valid_until() ? timer_->state() : lease_state::lost;
}

std::chrono::nanoseconds quorum_hold::remaining() const {
  const auto so = state();
  if (so == lease_state::lost || so == lease_state::released) return {};
  const std::lock_guard guard{mutex_};
  return std::max(timer_->valid_until() - quorum_->now(), std::chrono::nanoseconds{});
}

std::stop_token quorum_hold::lost() {
  if (state() == lease_state::lost) lost_.request_stop();
  return lost_.get_token();
}

std::vector<holdfast::vote> quorum_hold::votes() const {
  const std::lock_guard guard{mutex_};
  return votes_;
}

void quorum_hold::tell(event_kind kind, std::chrono::nanoseconds margin) const {
  event e;
  e.kind = kind;
  e.name = quorum_->name;
  e.lock_kind = to_string(quorum_->nodes.front()->what()->kind);
  e.fence = fence();
  e.waited = since_ - began_;
  e.held = quorum_->now() - since_;
  e.margin = margin;
  if (kind == event_kind::lost) e.code = errc::lost;
  if (kind == event_kind::release_failed) e.code = errc::unavailable;
  quorum_->first().tell(e);
}

}  // namespace holdfast::engine
