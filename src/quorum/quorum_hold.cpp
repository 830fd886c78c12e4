#include "quorum/quorum_hold.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/losses.hpp"

namespace holdfast::engine {

using namespace std::chrono_literals;
using store::permits_outcome;
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
      owner_(quorum_->first().new_owner()),
      asked_(quorum_->nodes.size()),
      votes_(quorum_->nodes.size(), holdfast::vote::skipped),
      owes_(quorum_->nodes.size()),
      to_ask_(quorum_->nodes.size()),
      renewed_(quorum_->nodes.size()) {}

// ---- to acquire it

store::permits_command quorum_hold::grant_command(const quorum_node& at,
                                                  std::uint64_t at_least) const {
  auto c = acquire_command(*at.session(), *at.what(), {}, owner_, false);
  c.lease_us = std::chrono::microseconds(lease_).count();
  c.fence_at_least = at_least;
  return c;
}

// Failing nodes are left alone for a while, as long as a majority remains without them.
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

std::shared_ptr<quorum_round> quorum_hold::new_round(quorum_round::listener each) const {
  return std::make_shared<quorum_round>(quorum_, std::move(each), ballot_.news);
}

template <class Step>
std::optional<quorum_hold::awaited> quorum_hold::or_give_back(Step step) try {
  return step();
} catch (...) {  // no memory
  if (!ballot_.given_back) give_back_later();
  throw;
}

std::optional<quorum_hold::awaited> quorum_hold::begin_vote(const vote_time& time,
                                                            quorum_round::news after_each) {
  ballot_.time = time;
  ballot_.news = std::move(after_each);
  ballot_.began = quorum_->now();
  return or_give_back([&] { return begin_asking(); });
}

std::optional<quorum_hold::awaited> quorum_hold::go_on(const awaited& after) {
  return or_give_back([&] { return (this->*after.then)(after.round->so_far()); });
}

std::optional<quorum_hold::awaited> quorum_hold::break_off(const awaited& meanwhile,
                                                           boot_time until) {
  ballot_.time.deadline = std::min(ballot_.time.deadline, until);
  if (!ballot_.given_back) return or_give_back([&] { return fail(ballot_.grants->so_far()); });
  auto sooner = meanwhile;
  sooner.until = std::min(sooner.until, until);
  return sooner;
}

bool quorum_hold::decided(const answers& so_far) const {
  const std::size_t majority = quorum_->majority();
  const auto granted = count(so_far, holdfast::vote::granted);
  return granted >= majority || granted + count(so_far, holdfast::vote::silent) < majority;
}

std::optional<quorum_hold::awaited> quorum_hold::ask_for_grants(
    const std::vector<std::size_t>& nodes, next_step then) {
  const boot_time until = ballot_.time.until(quorum_->now());
  for (const std::size_t i : nodes) {
    asked_[i] = true;
    const auto& node = *quorum_->nodes[i];
    ballot_.grants->ask(i, grant_command(node, ballot_.proposal), asked::of_trusted);
  }
  return awaited{ballot_.grants, until, [this](const answers& a) { return decided(a); }, then};
}

// Tells each node the time of the fastest clock: then all grant the same fence, and a second round
// is seldom needed.
std::optional<quorum_hold::awaited> quorum_hold::begin_asking() {
  const auto to = worth_asking();
  std::int64_t proposal = 0;
  for (const auto& node : quorum_->nodes) {
    proposal = std::max(proposal, node->wall_at(quorum_->now()));
  }
  ballot_.proposal = static_cast<std::uint64_t>(proposal);
  ballot_.grants = new_round(nullptr);
  return ask_for_grants(to, &quorum_hold::on_first_grants);
}

// If the nodes left alone are needed for a decision, asks them: they may have recovered.
std::optional<quorum_hold::awaited> quorum_hold::on_first_grants(answers&& votes) {
  const std::size_t majority = quorum_->majority();
  const auto granted = count(votes, holdfast::vote::granted);
  const auto left_alone = count(votes, holdfast::vote::skipped);
  const auto open = count(votes, holdfast::vote::silent) + left_alone;
  if (left_alone == 0 || granted >= majority || granted + open < majority) {
    return on_grants(std::move(votes));
  }
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < votes.size(); ++i) {
    if (votes[i].said == holdfast::vote::skipped) others.push_back(i);
  }
  return ask_for_grants(others, &quorum_hold::on_grants);
}

bool quorum_hold::knows_fence(const answer& a) const {
  return a.said == holdfast::vote::granted && a.reply.fence == fence_;
}

bool quorum_hold::enough_know_fence(const answers& all) const {
  const auto those =
      std::count_if(all.begin(), all.end(), [&](const answer& a) { return knows_fence(a); });
  return static_cast<std::size_t>(those) >= quorum_->majority();
}

// A later majority shares a node with this one. So if every node of this majority knows the
// greatest fence, a later majority's fence is greater, whatever the clocks of the nodes are.
std::optional<quorum_hold::awaited> quorum_hold::on_grants(answers&& votes) {
  if (count(votes, holdfast::vote::granted) < quorum_->majority()) return fail(votes);
  for (const auto& a : votes) {
    if (a.said == holdfast::vote::granted) fence_ = std::max(fence_, a.reply.fence);
  }
  if (enough_know_fence(votes)) return conclude(votes);
  ballot_.votes = std::move(votes);
  const boot_time until = ballot_.time.until(quorum_->now());
  const auto round = new_round(nullptr);
  for (std::size_t i = 0; i < ballot_.votes.size(); ++i) {
    const auto& a = ballot_.votes[i];
    if (a.said != holdfast::vote::granted || knows_fence(a)) continue;
    const auto& node = *quorum_->nodes[i];
    round->ask(i, grant_command(node, fence_), asked::of_trusted);
  }
  return awaited{round, until,
                 [this](const answers& a) { return enough_know_fence(with_learned(a)); },
                 &quorum_hold::on_fence};
}

quorum_hold::answers quorum_hold::with_learned(const answers& learned) const {
  auto all = ballot_.votes;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (learned[i].said != holdfast::vote::skipped) all[i] = learned[i];
  }
  return all;
}

std::optional<quorum_hold::awaited> quorum_hold::on_fence(answers&& learned) {
  const auto votes = with_learned(learned);
  return enough_know_fence(votes) ? conclude(votes) : fail(votes);
}

std::optional<quorum_hold::awaited> quorum_hold::conclude(const answers& votes) {
  std::chrono::nanoseconds lasts = lease_;
  for (const auto& a : votes) {
    if (a.said == holdfast::vote::granted)
      lasts = std::min<std::chrono::nanoseconds>(lasts, lease_of(a.reply));
  }
  const boot_time now = quorum_->now();
  const boot_time valid_until = lease_timer::sure_until(ballot_.began, lasts);
  if (valid_until <= now) return fail(votes);
  note(votes);
  began_ = ballot_.time.began;
  since_ = now;
  ballot_ = {};
  timer_.emplace(lease_timer::terms{lease_, renew_, forever}, now, valid_until);
  tell(event_kind::acquired);
  return std::nullopt;
}

void quorum_hold::note(const answers& votes) {
  const std::lock_guard guard{mutex_};
  for (std::size_t i = 0; i < votes.size(); ++i) votes_[i] = votes[i].said;
}

// Whether a node was not waited for, because the others had decided or the time was up. Such a node
// does not count as away until its full time limit has passed, however short the caller's limit is.
bool quorum_hold::had_no_time(const answers& votes, std::size_t node) const {
  const boot_time now = quorum_->now();
  return votes[node].said == holdfast::vote::silent && now - ballot_.began < quorum_->patience &&
         !quorum_->nodes[node]->hangs(now, quorum_->patience);
}

// A node that was not waited for counts as away if it failed before. If refusals alone have
// decided, that is open: it may be well again.
quorum_hold::reach quorum_hold::reached(const answers& votes) const {
  std::size_t there = 0, open = 0;
  for (std::size_t i = 0; i < votes.size(); ++i) {
    const auto said = votes[i].said;
    if (said == holdfast::vote::granted || said == holdfast::vote::refused) {
      ++there;
    } else if (had_no_time(votes, i)) {
      ++(quorum_->nodes[i]->fails() ? open : there);
    }
  }
  const std::size_t majority = quorum_->majority();
  if (there >= majority) return reach::enough;
  const bool refused = count(votes, holdfast::vote::refused) > votes.size() - majority;
  return refused && there + open >= majority ? reach::unclear : reach::too_few;
}

// Releases, and waits for the nodes that answered: the next request must not find remains of this
// one.
std::optional<quorum_hold::awaited> quorum_hold::fail(const answers& votes) {
  note(votes);
  std::vector<bool> answered;
  answered.reserve(votes.size());
  std::size_t others = 0;
  for (std::size_t i = 0; i < votes.size(); ++i) {
    const auto said = votes[i].said;
    // A single node's mismatch is a vote like others, unless there is no majority without the nodes
    // that report it.
    if (is_mismatch(votes[i]) && votes.size() - ++others < quorum_->majority())
      hopeless_ = mismatch_of(votes[i].reply, *quorum_->nodes.front()->what());
    if (first_failure_.empty()) first_failure_ = votes[i].why.what;
    const bool voted = said == holdfast::vote::granted || said == holdfast::vote::refused;
    answered.push_back(voted || said == holdfast::vote::untrusted);
  }
  reach_ = reached(votes);
  return give_back(std::move(answered), &quorum_hold::on_given_back);
}

// Also sent to nodes without an answer: the release follows the request, and if it fails the keeper
// retries.
std::optional<quorum_hold::awaited> quorum_hold::give_back(std::vector<bool> wait_for,
                                                           next_step then) {
  const auto round =
      new_round([q = quorum_, owner = owner_, lease = lease_](std::size_t i, const answer& a) {
        const auto& node = *q->nodes[i];
        if (a.said == holdfast::vote::failed)
          node.session()->keeper().abandon(node.what()->name, owner, lease);
      });
  const auto c = release_command(owner_);
  const boot_time until = ballot_.time.until(quorum_->now());
  {
    const std::lock_guard guard{asking_};
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      if (asked_[i]) round->ask(i, c);
    }
  }
  ballot_.given_back = true;
  const auto all_heard = [wait_for = std::move(wait_for)](const answers& so_far) {
    for (std::size_t i = 0; i < so_far.size(); ++i) {
      if (wait_for[i] && so_far[i].said == holdfast::vote::silent) return false;
    }
    return true;
  };
  return awaited{round, until, all_heard, then};
}

// ---- to keep it

void quorum_hold::keep(std::shared_ptr<quorum_renewer> by) {
  renewer_ = std::move(by);
  renewer_->add(weak_from_this());
}

// A round without enough answers in time has failed: the nodes that answered are asked again.
boot_time quorum_hold::look_after() {
  std::unique_lock lock{mutex_};
  if (released_) return forever;
  const boot_time now = quorum_->now();
  const auto step = timer_->due(now);
  const bool over = timer_->state() == lease_state::lost;
  const bool in_vain = !over && (step == lease_timer::step::suspect || now >= round_until_);
  if (over || in_vain) {
    ++round_;  // answers of the last round that come later are late
    round_until_ = forever;
  }
  if (in_vain) (void)timer_->failed(now);
  const bool more = std::exchange(ask_more_, false) && !over && !in_vain;
  lock.unlock();
  if (step == lease_timer::step::renew) {
    renew();
  } else if (more) {
    ask_for_renewal();
  }
  if (in_vain) tell(event_kind::renew_failed);
  if (step == lease_timer::step::suspect) tell(event_kind::suspect);
  if (step == lease_timer::step::lost) {
    tell_lost();
    // Late renewals, or renewals by too few nodes, would keep it at those nodes.
    if (renew_) abandon();
  }
  lock.lock();
  return released_ ? forever : std::min(timer_->next(), round_until_);
}

// Reports the loss once, by the thread that finds it first.
void quorum_hold::tell_lost() {
  {
    const std::lock_guard guard{mutex_};
    if (std::exchange(told_lost_, true)) return;
  }
  lost_.request_stop();
  tell(event_kind::lost);
}

/// The votes that arrive while the nodes are being asked, on the asking thread: from nodes that
/// cannot be asked at all. They are counted when all nodes have been asked, because the observer of
/// an event may release the lock.
class quorum_hold::early_votes {
 public:
  explicit early_votes(std::size_t nodes) { all_.reserve(nodes); }
  bool take(std::size_t node, holdfast::vote said) noexcept {
    if (std::this_thread::get_id() != asks_ || !asking_) return false;
    all_.emplace_back(node, said);
    return true;
  }
  void begin() noexcept {
    asking_ = true;
    all_.clear();
  }
  const std::vector<std::pair<std::size_t, holdfast::vote>>& all_asked() noexcept {
    asking_ = false;
    return all_;
  }

 private:
  const std::thread::id asks_ = std::this_thread::get_id();
  bool asking_ = false;  // only used by that thread
  std::vector<std::pair<std::size_t, holdfast::vote>> all_;
};

struct quorum_hold::renewal {
  std::uint64_t number;
  boot_time began;
  std::shared_ptr<early_votes> early;
  std::shared_ptr<quorum_round> round;
};

// Sends an acquire, not a renewal: a node that forgot the lock grants it again, with the fence.
// Also asks nodes that failed a moment ago, because the lease is running.
void quorum_hold::renew() {
  renewal_.reset();
  std::unique_lock lock{mutex_};
  if (released_) return;
  const std::uint64_t number = ++round_;
  const boot_time began = round_began_ = quorum_->now();
  round_until_ = saturated_add(began, lease_ / 6);
  decided_ = false;
  no_ = 0;
  to_ask_.assign(to_ask_.size(), true);
  lock.unlock();
  const auto early = std::make_shared<early_votes>(quorum_->nodes.size());
  const auto round = std::make_shared<quorum_round>(
      quorum_,
      [self = weak_from_this(), number, began, early](std::size_t i, const answer& a) {
        if (early->take(i, a.said)) return;
        if (const auto hold = self.lock()) hold->on_renewal(number, began, i, a.said);
      },
      [] {});  // nobody waits: each answer is handled by itself
  renewal_ = std::make_shared<renewal>(renewal{number, began, early, round});
  ask_for_renewal();
}

// A node that has not answered the previous renewal is asked when it has. While it hangs, requests
// would pile up, and the release would come after all of them.
void quorum_hold::ask_for_renewal() {
  if (!renewal_) return;
  std::unique_lock asking{asking_};
  asked_.assign(asked_.size(), true);
  renewal_->early->begin();
  for (std::size_t i = 0; i < quorum_->nodes.size(); ++i) {
    if (!may_ask(i)) continue;
    const auto& node = *quorum_->nodes[i];
    renewal_->round->ask(i, grant_command(node, fence_));
  }
  asking.unlock();
  for (const auto& [node, said] : renewal_->early->all_asked()) {
    on_renewal(renewal_->number, renewal_->began, node, said);
  }
}

// If true, the node owes an answer from now on.
bool quorum_hold::may_ask(std::size_t node) {
  const std::lock_guard guard{mutex_};
  if (released_ || renewal_->number != round_ || !to_ask_[node] || owes_[node]) return false;
  to_ask_[node] = false;
  return owes_[node] = true;
}

// The time at which the rounds had begun in which that many nodes last renewed it.
boot_time quorum_hold::renewed_by(std::size_t nodes) const noexcept {
  boot_time last{};
  for (const boot_time t : renewed_) {
    const auto as_late = std::count_if(renewed_.begin(), renewed_.end(),
                                       [&](const boot_time other) { return other >= t; });
    if (static_cast<std::size_t>(as_late) >= nodes) last = std::max(last, t);
  }
  return last;
}

// A node that answers after its round has failed has renewed the lease all the same, from the time
// on at which that round began.
void quorum_hold::on_renewal(std::uint64_t round, boot_time began, std::size_t node,
                             holdfast::vote said) {
  std::unique_lock lock{mutex_};
  owes_[node] = false;
  if (released_) return;
  const bool granted = said == holdfast::vote::granted;
  if (granted) renewed_[node] = std::max(renewed_[node], began);
  if (said == holdfast::vote::refused) renewed_[node] = {};
  const bool is_late = round != round_;
  if (is_late && to_ask_[node] && round_until_ != forever) ask_more_ = true;
  votes_[node] = said;  // also if it is late: a node owes no more than one answer
  if (!is_late && !granted) ++no_;
  const boot_time now = quorum_->now();
  const boot_time since = renewed_by(quorum_->majority());
  const auto margin = timer_->valid_until() - now;
  const bool enough = granted && margin > margin.zero() &&
                      lease_timer::sure_until(since, lease_) > timer_->valid_until();
  const bool in_vain = !is_late && !granted && !decided_ &&
                       votes_.size() - no_ + 1 == quorum_->majority();
  bool changed = false;
  if (enough || in_vain) round_until_ = forever;
  if (in_vain || (enough && since >= round_began_)) decided_ = true;
  if (enough) changed = timer_->renewed(now, since, lease_);
  if (in_vain) changed = timer_->failed(now);
  const bool more = ask_more_;
  lock.unlock();
  if (in_vain) tell(event_kind::renew_failed);
  if (enough) tell(changed ? event_kind::held_again : event_kind::renewed, margin);
  if (in_vain && changed) tell(event_kind::suspect);
  if (enough || in_vain || more) renewer_->wake();
}

// ---- to release it

namespace {
std::string why_too_few(const std::vector<quorum_round::answer>& said) {
  std::string why = "too few nodes confirmed it";
  const auto failed =
      std::find_if(said.begin(), said.end(), [](const auto& a) { return !a.why.what.empty(); });
  if (failed != said.end()) why += "; one failed with: " + failed->why.what;
  return why;
}
}  // namespace

status quorum_hold::release() noexcept {
  if (auto over = end()) return *std::move(over);
  try {
    auto next = begin_giving_back();
    while (next) {
      next->wait();
      next = go_on(*next);
    }
    return released_as();
  } catch (...) {
    return give_back_in_vain();
  }
}

std::optional<status> quorum_hold::end() noexcept {
  if (quorum_->first().forked()) return released_as_ = errc::forked, released_as();
  const std::lock_guard guard{mutex_};
  if (std::exchange(released_, true)) return done{};
  was_lost_ = timer_->state() == lease_state::lost || quorum_->now() >= timer_->valid_until();
  return std::nullopt;
}

std::optional<quorum_hold::awaited> quorum_hold::begin_giving_back(quorum_round::news after_each) {
  ballot_.time = {quorum_->patience};
  ballot_.news = std::move(after_each);
  std::vector<bool> wait_for;
  for (const auto v : votes()) wait_for.push_back(v == holdfast::vote::granted);
  return give_back(std::move(wait_for), &quorum_hold::on_released);
}

std::optional<quorum_hold::awaited> quorum_hold::on_released(answers&& said) {
  const bool told = was_lost_ || count(said, holdfast::vote::granted) >= quorum_->majority();
  if (!told) too_few_confirmed_ = why_too_few(said);
  told_end_ = true;  // what follows needs no memory
  if (was_lost_) {
    released_as_ = errc::lost;
    tell_lost();
    return std::nullopt;
  }
  if (!told) released_as_ = errc::unavailable;
  tell(told ? event_kind::released : event_kind::release_failed);
  return std::nullopt;
}

// The result may have been reported before the memory ran out.
status quorum_hold::give_back_in_vain() noexcept {
  if (std::exchange(told_end_, true)) return released_as();
  give_back_later();
  released_as_ = was_lost_ ? errc::lost : errc::overloaded;
  was_lost_ ? tell_lost() : tell(event_kind::release_failed);
  return released_as();
}

status quorum_hold::released_as() const noexcept {
  if (!released_as_) return done{};
  const auto code = static_cast<errc>(released_as_.value());
  try {
    return quorum_->first().located({code, too_few_confirmed_}, "release", quorum_->name);
  } catch (...) {
    return failure{code, ""};  // no memory: only the code is known
  }
}

void quorum_hold::let_go() noexcept {
  if (won()) {
    if (!end()) (void)give_back_in_vain();
  } else if (!ballot_.given_back) {
    give_back_later();
  }
}

// Releases without the memory to wait for it: after all requests under way, however long they take.
void quorum_hold::give_back_later() noexcept {
  try {
    ballot_.time = {};
    (void)give_back(std::vector<bool>(quorum_->nodes.size()), &quorum_hold::on_given_back);
  } catch (...) {
    // No memory for that either.
  }
  abandon();
}

// Makes the keepers release it, after the requests under way.
void quorum_hold::abandon() noexcept {
  const std::lock_guard guard{asking_};
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
  if (quorum_->first().forked()) return lost_in_a_child();
  if (state() == lease_state::lost) lost_.request_stop();
  return lost_.get_token();
}

std::vector<holdfast::vote> quorum_hold::votes() const {
  const std::lock_guard guard{mutex_};
  return votes_;
}

void quorum_hold::tell(event_kind kind, std::chrono::nanoseconds margin) const {
  event e{.kind = kind,
          .name = quorum_->name,
          .lock_kind = to_string(quorum_->nodes.front()->what()->kind),
          .fence = fence(),
          .waited = since_ - began_,
          .held = quorum_->now() - since_,
          .margin = margin};
  if (kind == event_kind::lost) {
    e.code = errc::lost;
    e.detail = renew_ ? losses::no_majority : losses::lease_ended;
  }
  if (kind == event_kind::release_failed) {
    e.code = released_as_;
    e.detail = too_few_confirmed_;
  }
  quorum_->first().tell(e);
}

}  // namespace holdfast::engine
