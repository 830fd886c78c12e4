#include <algorithm>
#include <holdfast/election.hpp>

#include "primitive/common.hpp"
#include "wait/async_forms.hpp"
#include "wait/wait_steps.hpp"

namespace holdfast {

using namespace std::chrono_literals;
using primitive::subject;

namespace {

constexpr std::chrono::milliseconds look_every = 500ms;

leader described(std::uint64_t fence, const std::string& note, std::int64_t since_wall_at) {
  const participant p = primitive::describe({}, 1, note, since_wall_at, 0, 0);
  return leader{engine::public_fence(fence), p.reason, p.host, p.pid, p.program, p.since};
}

/// Returns nothing if the store knows that the leader has died: the next candidate that asks leads.
std::optional<leader> leader_of(const store::permits_reply& reply) {
  if (reply.found.kind != store::kind::election || reply.found.holders.empty()) return std::nullopt;
  const auto& h = reply.found.holders.front();
  const auto& dead = reply.blockers;
  const bool died = !h.peer.empty() && std::find(dead.begin(), dead.end(), h.peer) != dead.end();
  if (died) return std::nullopt;
  return described(h.fence, h.note, h.since_wall_at);
}

// The first leader after that term, and whether other leaders may have been between the two.
std::optional<leader> first_after(std::uint64_t term, const store::permits_reply& reply) {
  const auto& all = reply.found.history;
  const auto known = [](const store::led& l) { return engine::public_fence(l.fence); };
  const bool goes_back =
      std::any_of(all.begin(), all.end(), [&](const auto& l) { return known(l) == term; }) ||
      (term == 0 && !all.empty() && all.size() < store::most_led);
  const auto next =
      std::find_if(all.begin(), all.end(), [&](const auto& l) { return known(l) > term; });
  auto found = next == all.end() ? leader_of(reply)  // a record that was damaged
                                 : described(next->fence, next->note, next->since_wall_at);
  if (!found || found->term <= term) return std::nullopt;
  found->after_gap = !goes_back;
  return found;
}

result<std::optional<leader>> leader_now(const store::permits_reply& reply) {
  if (reply.outcome != store::permits_outcome::kind_mismatch) return leader_of(reply);
  return primitive::in_use_as(reply.found.kind);
}

/// The present or former leader that follows the one returned last.
class look_for_next final : public engine::request {
 public:
  look_for_next(const std::string& name, std::optional<std::uint64_t>& after)
      : name_(name), after_(after) {}

  std::optional<store::named_command> command(bool) override {
    return store::named_command{name_, {}};
  }
  answer learn(result<store::permits_reply> reply, boot_time) override {
    if (!reply) return std::move(reply.error());
    auto now = leader_now(*reply);
    if (!now) return std::move(now.error());
    found = after_ ? first_after(*after_, *reply) : std::move(*now);
    if (found) return after_ = found->term, settled();
    if (!after_) after_ = last_of(*reply);
    return ask_again({look_every, {}});
  }
  std::string in_vain() const override { return "no other candidate had become the leader"; }

  std::optional<leader> found;

 private:
  // Leaders before the first request are not reported.
  static std::uint64_t last_of(const store::permits_reply& reply) {
    const auto& all = reply.found.history;
    return all.empty() ? 0 : engine::public_fence(all.back().fence);
  }

  const std::string& name_;
  std::optional<std::uint64_t>& after_;
};

}  // namespace

/// The state of a stream, which may outlive the election.
struct leaders::state {
  subject of;
};

struct election::state {
  std::shared_ptr<const leaders::state> seen;
  std::int32_t priority;
  const subject& of() const noexcept { return seen->of; }
};

election::election(session s, const std::string& name, const election_options& options)
    : state_(new state{std::shared_ptr<const leaders::state>(new leaders::state{subject(
                           s, "election", name, {.lease = options.lease, .reason = options.note},
                           store::kind::election, 1, &store::capabilities::election)}),
                       options.priority}) {
  const subject& of = state_->of();
  if (options.priority == 0 || of.session->can().preferences) return;
  of.fail({errc::unsupported,
           "this store serves in order of arrival, and knows no priority: leave it 0"});
}

election::~election() = default;

leadership election::campaign(std::stop_token stop) {
  return leadership(state_->of().take({1, state_->priority}, no_limit, std::move(stop)));
}

std::optional<leadership> election::campaign_within(wait_time wait, std::stop_token stop) {
  auto got = state_->of().acquire({1, state_->priority}, wait, std::move(stop));
  if (!got) return std::nullopt;
  return leadership(std::move(*got));
}

pending<leadership> async_campaign(election& of, wait_limit limit, std::stop_token stop) {
  const auto& s = *detail::access::of(of);
  auto mine = engine::async_acquire(s.of().request(limit, std::move(stop), {1, s.priority}));
  return engine::async_then<leadership>(std::move(mine),
                                        [](lease won) { return leadership(std::move(won)); });
}

std::optional<leader> election::current() const { return state_->of().ask({}, leader_now); }

pending<std::optional<leader>> async_current(const election& of) {
  return detail::access::of(of)->of().ask_later<std::optional<leader>>({}, leader_now);
}

leaders election::observe() const { return leaders(state_->seen); }

const std::string& election::name() const noexcept { return state_->of().config->name; }

std::optional<leader> leaders::next_within(wait_time wait, std::stop_token stop) {
  const subject& of = of_->of;
  auto& session = *of.session;
  look_for_next q(of.config->name, last_term_);
  (void)of.settled(engine::wait_until_settled(session, session.new_owner(), q,
                                              {session.now(), wait}, std::move(stop)));
  return std::move(q.found);
}

pending<leader> async_next(leaders& of, wait_limit limit, std::stop_token stop) {
  const subject& about = of.of_->of;
  auto& session = *about.session;
  return engine::async_ask<leader>(
      about.request(limit, std::move(stop)), session.new_owner(),
      std::make_unique<look_for_next>(about.config->name, of.last_term_),
      [](auto q) -> result<leader> { return std::move(*q->found); });
}

leader leaders::next(std::stop_token stop) {
  auto got = next_within(no_limit, std::move(stop));
  if (!got) of_->of.fail(engine::asked_to_stop());
  return std::move(*got);
}

}  // namespace holdfast
