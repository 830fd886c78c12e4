#include <algorithm>
#include <holdfast/redlock.hpp>

#include "base/names.hpp"
#include "primitive/common.hpp"
#include "primitive/redlock_wait.hpp"
#include "wait/wait_steps.hpp"

namespace holdfast {

using namespace std::chrono_literals;
using primitive::redlock_wait;
using primitive::votes_of_redlock;

namespace {

constexpr std::string_view operation = votes_of_redlock::operation;

/// With another program's layout (dialect=redlock) nodes have no fences. A node with fences among
/// those without would have to teach them its fence, which they cannot store.
void check_fences(const votes_of_redlock& of) {
  const auto& nodes = of.nodes->nodes;
  const auto fenced = [](const auto& node) { return node->session()->can().fences; };
  const auto some = std::count_if(nodes.begin(), nodes.end(), fenced);
  if (some == 0 || static_cast<std::size_t>(some) == nodes.size()) return;
  of.fail({errc::unsupported,
           "some of the nodes have fences, and some (dialect=redlock) have none, so the fences of "
           "the lock would not grow: open all nodes with the dialect, or none of them"});
}

}  // namespace

struct redlock::state {
  const std::shared_ptr<votes_of_redlock> of = std::make_shared<votes_of_redlock>();
  primitive::by_thread<quorum_lease> holds;
};

redlock::redlock(std::vector<session> nodes, std::string name, redlock_options options)
    : state_(new state) {
  auto& s = *state_->of;
  if (nodes.empty()) {
    throw_failure({errc::invalid_argument, "a redlock needs at least one session", false,
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
  check_fences(s);
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
  const auto& of = *state_->of;
  if (lease) {
    if (auto ok = base::check_lease(*lease); !ok) of.fail(std::move(ok.error()));
  }
  auto& first = of.nodes->first();
  const engine::time_frame asked(first.now(), wait);
  if (auto can = of.make_ready(); !can) of.fail(std::move(can.error()));
  redlock_wait waits(state_->of, lease, asked);
  auto ended = waits.step(stop.stop_requested());
  for (; !ended; ended = waits.step(stop.stop_requested())) waits.wait(stop);
  if (*ended) return detail::access::make<quorum_lease>(std::move(**ended));
  if (engine::was_given_up(ended->error().code)) return std::nullopt;
  of.fail(std::move(ended->error()));
}

quorum_lease redlock::take(lease_time lease, std::stop_token stop) {
  auto got = acquire_within(no_limit, lease, std::move(stop));
  if (!got) state_->of->fail(engine::asked_to_stop());
  return std::move(*got);
}

bool redlock::lock_within(wait_time wait, lease_time lease, std::stop_token stop) {
  return primitive::lock_for_thread(state_->holds, *state_->of, wait,
                                    "this thread holds the lock already",
                                    [&] { return acquire_within(wait, lease, std::move(stop)); });
}

void redlock::unlock() noexcept {
  const quorum_lease held = state_->holds.take();  // its destructor releases
  if (held) return;
  const auto& nodes = *state_->of->nodes;
  primitive::report_misuse(nodes.first(), nodes.name, {},
                           "unlock() of a redlock by a thread that does not hold it");
}

std::vector<vote> redlock::last_votes() const {
  state_->of->require_usable();
  const std::lock_guard guard{state_->of->mutex};
  return state_->of->last;
}
std::uint64_t redlock::attempts() const noexcept { return state_->of->attempts; }
std::uint64_t redlock::fence() const {
  return state_->holds.with_mine([](const quorum_lease& mine) { return mine.fence(); });
}
void redlock::check() const {
  state_->of->require_usable();
  state_->holds.with_mine([](const quorum_lease& mine) { mine.check(); });
}
std::stop_token redlock::lost() const {
  return state_->holds.with_mine([](const quorum_lease& mine) { return mine.lost(); });
}
clock& clock_of(const redlock& m) noexcept { return m.state_->of->nodes->first().clock(); }

// ---- without a thread

namespace {

/// Woken by each answer. Uses a runner that no node can hold up.
class pending_redlock final : public engine::telling_wait<engine::pending_wait, quorum_lease> {
 public:
  pending_redlock(engine::async_request o, std::shared_ptr<votes_of_redlock> of)
      : telling_wait(std::move(o), &of->nodes->first().runner_of_several()),
        of_(std::move(of)),
        id_(of_->nodes->first().new_owner()) {}
  const store::owner_id& owner() const noexcept override { return id_; }

 private:
  next come_in() override {
    if (!waits_) {
      if (auto can = of_->make_ready(); !can) return end(std::move(can.error()));
      waits_.emplace(of_, std::nullopt, time_, [self = weak_from_this()] {
        if (const auto here = self.lock()) here->wake();
      });
    }
    auto ended = waits_->step(stop().stop_requested());
    if (!ended) return retry_after(waits_->until());
    if (!*ended) return end(std::move(ended->error()));
    tell(detail::access::make<quorum_lease>(std::move(**ended)));
    return over();
  }
  void leave_to_keeper() noexcept override {
    if (waits_) waits_->abandon();
  }
  failure observed(failure f) override {
    if (waits_) return f;  // it has been reported
    return of_->gave_up(time_, std::move(f));
  }

  // Unused: it asks no store itself.
  engine::request& asked() override { return nothing_; }
  void won(std::shared_ptr<engine::session_impl>) override {}
  std::optional<store::named_command> leaving(const failure&) override { return std::nullopt; }

  const std::shared_ptr<votes_of_redlock> of_;
  const store::owner_id id_;
  engine::request nothing_;
  std::optional<redlock_wait> waits_;
};

}  // namespace

pending<quorum_lease> async_acquire(redlock& lock, wait_limit limit, std::stop_token stop) {
  const auto& of = detail::access::of(lock)->of;
  const auto& first = *of->nodes->nodes.front();
  engine::async_request o{first.session(),
                          first.what(),
                          operation,
                          {first.session()->now(), limit.wait()},
                          std::move(stop)};
  return pending<quorum_lease>(std::make_shared<pending_redlock>(std::move(o), of));
}

}  // namespace holdfast
