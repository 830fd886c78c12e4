#include <algorithm>
#include <atomic>
#include <holdfast/redlock.hpp>

#include "base/names.hpp"
#include "primitive/common.hpp"
#include "primitive/distinct_nodes.hpp"
#include "quorum/quorum_hold.hpp"
#include "session/sleeper.hpp"

namespace holdfast {

using namespace std::chrono_literals;
using engine::quorum_hold;

namespace {

constexpr std::string_view operation = "redlock";

std::string in_words(const std::vector<vote>& votes) {
  std::string words;
  for (const vote v : votes) words += (words.empty() ? "" : ", ") + std::string(to_string(v));
  return words;
}

/// How long to pause before the next vote. Votes that were split are sorted out soon, by chance;
/// a client that has a majority is not to be disturbed often.
class pauses {
 public:
  explicit pauses(std::chrono::nanoseconds patience) : patience_(patience) {}

  // A vote that took longer than a node is waited for was held up here: that says nothing of them.
  std::chrono::nanoseconds after(const std::vector<vote>& votes, std::chrono::nanoseconds took) {
    const bool split = std::count(votes.begin(), votes.end(), vote::granted) > 0;
    if (split) {
      const auto base = std::max<std::chrono::nanoseconds>(std::min(took, patience_), 100us);
      const auto most = std::max<std::chrono::nanoseconds>(longest, 2 * base);
      return random_part(std::min(base * (2 << std::min(splits_++, 4U)), most));
    }
    splits_ = 0;
    const auto most =
        std::min<std::chrono::nanoseconds>(5ms * (1 << std::min(refusals_++, 6U)), longest);
    return most * 3 / 4 + random_part(most / 4);
  }

 private:
  static std::chrono::nanoseconds random_part(std::chrono::nanoseconds of) {
    return std::chrono::nanoseconds(engine::jitter(static_cast<std::uint64_t>(of.count())));
  }
  static constexpr auto longest = 250ms;
  const std::chrono::nanoseconds patience_;
  unsigned splits_ = 0;
  unsigned refusals_ = 0;
};

/// The last time so that there is time for it.
boot_time next_vote(boot_time now, std::chrono::nanoseconds pause, std::chrono::nanoseconds took,
                    boot_time deadline) {
  if (deadline - now > pause) return now + pause;
  const boot_time last = deadline - 2 * std::max<std::chrono::nanoseconds>(took, 1ms);
  return last > now ? last : deadline;
}

}  // namespace

struct redlock::state {
  std::shared_ptr<engine::quorum> nodes = std::make_shared<engine::quorum>();
  std::chrono::milliseconds lease{};
  std::shared_ptr<engine::quorum_renewer> renewer;
  std::unique_ptr<primitive::distinct_nodes> distinct;
  std::atomic<std::uint64_t> attempts{0};
  mutable std::mutex mutex;
  std::vector<vote> last_votes;
  primitive::by_thread<quorum_lease> holds;

  [[noreturn]] void fail(failure f) const {
    throw_failure(nodes->first().located(std::move(f), operation, nodes->name));
  }

  /// Among nodes of another program's layout nothing has a fence. One that has, among those, would
  /// have to teach them.
  void check_fences() const {
    const auto fenced = [](const auto& node) { return node->session()->can().fences; };
    const auto some = std::count_if(nodes->nodes.begin(), nodes->nodes.end(), fenced);
    if (some == 0 || static_cast<std::size_t>(some) == nodes->nodes.size()) return;
    fail({errc::unsupported,
          "some of the nodes have fences, and some (dialect=redlock) have none, so the fences of "
          "the lock would not grow: open all nodes with the dialect, or none of them"});
  }

  void make_ready(boot_time deadline) const {
    for (const auto& node : nodes->nodes) {
      if (auto can = engine::ready(*node->session(), *node->what(), {}); !can) {
        fail(std::move(can.error()));
      }
    }
    if (auto can = renewer->start(); !can) fail(std::move(can.error()));
    if (auto ok = distinct->check(deadline); !ok) fail(std::move(ok.error()));
  }

  std::chrono::nanoseconds patience(wait_time wait) const {
    if (wait == no_limit || wait == one_try) return nodes->patience;
    const auto part = wait / static_cast<std::int64_t>(nodes->nodes.size());
    return std::clamp<std::chrono::nanoseconds>(
        part, 1ms, std::max<std::chrono::nanoseconds>(nodes->patience, 1ms));
  }

  /// What came of it, and whether it was won.
  std::pair<std::shared_ptr<quorum_hold>, bool> vote_once(const lease_time& asked,
                                                          const engine::vote_time& time) {
    auto hold = std::make_shared<quorum_hold>(nodes, asked.value_or(lease), !asked);
    ++attempts;
    const bool won = hold->vote(time);
    try {
      auto votes = hold->votes();
      const std::lock_guard guard{mutex};
      last_votes.swap(votes);
    } catch (...) {  // no memory
      if (won) (void)hold->release();
      throw;
    }
    if (auto why = hold->hopeless(); why && !won) fail(std::move(*why));
    return {std::move(hold), won};
  }

  failure gave_up(const engine::time_frame& asked, failure why) const {
    return engine::gave_up(nodes->first(), *nodes->nodes.front()->what(), asked, std::move(why));
  }

  [[noreturn]] void fail_unavailable(const quorum_hold& hold,
                                     const engine::time_frame& asked) const {
    const auto votes = hold.votes();
    const auto& said = hold.first_failure();
    fail(gave_up(asked, {errc::unavailable,
                         "too few of " + std::to_string(votes.size()) +
                             " nodes answer for a majority (" + in_words(votes) +
                             "): " + (said.empty() ? said : "one failed with: " + said + "; ") +
                             "bring them back, or look at redlock_options::node_timeout",
                         true}));
  }
};

redlock::redlock(std::vector<session> nodes, std::string name, redlock_options options)
    : state_(new state) {
  auto& s = *state_;
  if (nodes.empty()) {
    throw_failure({errc::invalid_argument, "without sessions there is no majority", false,
                   std::string(operation), name});
  }
  s.nodes->patience = saturated_nanoseconds(options.node_timeout);
  s.nodes->trust_after = saturated_nanoseconds(options.trust_after);
  const lock_options common{
      .lease = options.lease == 0ms ? nodes.front().impl()->options().lease : options.lease,
      .reason = options.reason};
  for (const auto& node : nodes) {
    const primitive::subject of(node, operation, name, common, store::kind::mutex, 1,
                                &store::capabilities::learns_fences);
    s.nodes->nodes.push_back(std::make_shared<engine::quorum_node>(of.session, of.config));
  }
  s.nodes->name = s.nodes->nodes.front()->what()->name;
  s.lease = common.lease;
  s.check_fences();
  if (options.node_timeout <= 0ms || options.trust_after < 0ms) {
    s.fail(
        {errc::invalid_argument, "node_timeout has to be positive, and trust_after not negative"});
  }
  s.renewer = engine::quorum_renewer::make(nodes.front().impl());
  s.distinct = std::make_unique<primitive::distinct_nodes>(s.nodes);
  if (auto ok = s.distinct->check_sessions(); !ok) s.fail(std::move(ok.error()));
}

redlock::~redlock() = default;

std::optional<quorum_lease> redlock::acquire_within(wait_time wait, lease_time lease,
                                                    std::stop_token stop) {
  auto& s = *state_;
  if (lease) {
    if (auto ok = base::check_lease(*lease); !ok) s.fail(std::move(ok.error()));
  }
  auto& first = s.nodes->first();
  const engine::time_frame asked(first.now(), wait);
  const boot_time deadline = asked.deadline();
  const engine::vote_time time{s.patience(wait), asked.is_try() ? forever : deadline,
                               asked.began()};
  s.make_ready(time.deadline);
  boot_time give_up = forever;
  pauses pause(time.each);
  engine::sleeper me(first.clock());
  const std::stop_callback on_stop{stop, [&] { me.wake(); }};
  while (!stop.stop_requested()) {
    const boot_time began = first.now();
    auto [hold, won] = s.vote_once(lease, time);
    if (won) {
      quorum_lease mine(hold);  // given back if there is no memory to keep it
      hold->keep(s.renewer);
      return mine;
    }
    const auto votes = hold->votes();
    boot_time now = first.now();
    const bool away = hold->too_few_answered();
    if (!away) give_up = forever;
    if (away && give_up == forever) give_up = saturated_add(now, first.options().store_timeout);
    if (now < deadline && (deadline != forever || now < give_up)) {
      me.sleep(next_vote(now, pause.after(votes, now - began), now - began, deadline));
      now = first.now();
    }
    if (now < deadline && (deadline != forever || now < give_up)) continue;
    if (away) s.fail_unavailable(*hold, asked);
    (void)s.gave_up(asked, engine::waited_in_vain(errc::timed_out));
    return std::nullopt;
  }
  (void)s.gave_up(asked, engine::waited_in_vain(errc::cancelled));
  return std::nullopt;
}

quorum_lease redlock::take(lease_time lease, std::stop_token stop) {
  auto got = acquire_within(no_limit, lease, std::move(stop));
  if (!got) state_->fail({errc::cancelled, "asked to stop while waiting"});
  return std::move(*got);
}

bool redlock::lock_within(wait_time wait, lease_time lease, std::stop_token stop) {
  if (auto can = state_->nodes->first().usable(); !can) state_->fail(std::move(can.error()));
  if (state_->holds.mine()) {
    if (wait != no_limit) return false;
    state_->fail({errc::deadlock, "this thread holds it already"});
  }
  auto got = acquire_within(wait, lease, std::move(stop));
  if (got) state_->holds.put(std::move(*got));
  return got.has_value();
}

void redlock::unlock() noexcept {
  const quorum_lease held = state_->holds.take();  // its end is the release
  if (held) return;
  primitive::report_misuse(state_->nodes->first(), state_->nodes->name, {},
                           "unlock() of a redlock by a thread that does not hold it");
}

std::vector<vote> redlock::last_votes() const {
  const std::lock_guard guard{state_->mutex};
  return state_->last_votes;
}
std::uint64_t redlock::attempts() const noexcept { return state_->attempts; }
std::uint64_t redlock::fence() const {
  return state_->holds.with_mine([](const quorum_lease& mine) { return mine.fence(); });
}
void redlock::check() const {
  state_->holds.with_mine([](const quorum_lease& mine) { mine.check(); });
}
std::stop_token redlock::lost() const {
  return state_->holds.with_mine([](const quorum_lease& mine) { return mine.lost(); });
}
clock& clock_of(const redlock& m) noexcept { return m.state_->nodes->first().clock(); }

}  // namespace holdfast
