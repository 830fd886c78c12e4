#include "simulation/conversation.hpp"

#include <algorithm>
#include <functional>
#include <holdfast/store/forwarding_store.hpp>

namespace simulation {

using holdfast::result;
using holdfast::store::named_command;
using holdfast::store::permits_command;
using holdfast::store::permits_outcome;
using holdfast::store::permits_reply;
using holdfast::store::permits_verb;

namespace {
// A waiter at a store that notifies nobody polls every 5 ms at most.
constexpr int most_in_a_second = 400;
}  // namespace

/// Notes what passes through it.
class listening_store final : public holdfast::store::forwarding_store {
 public:
  listening_store(conversation& to, int process, std::size_t at,
                  std::unique_ptr<session_store> inner)
      : forwarding_store(std::move(inner)), to_(to), process_(process), at_(at) {}

  result<permits_reply> permits(std::string_view name, const permits_command& c) override {
    to_.asks(process_, {name, c});
    auto reply = forwarding_store::permits(name, c);
    to_.hears(process_, at_, {name, c}, reply);
    if (reply) to_.hears_of_a_grant(at_, {name, c}, *reply);
    return reply;
  }
  bool permits_later(std::string_view name, const permits_command& c,
                     std::function<void(result<permits_reply>)> then) override {
    to_.asks(process_, {name, c});
    return forwarding_store::permits_later(name, c, std::move(then));
  }
  std::vector<result<permits_reply>> execute_batch(std::span<const named_command> batch) override {
    for (const auto& c : batch) to_.asks(process_, c);
    auto replies = forwarding_store::execute_batch(batch);
    for (std::size_t i = 0; i < batch.size(); ++i) to_.hears(process_, at_, batch[i], replies[i]);
    return replies;
  }
  result<std::vector<permits_reply>> acquire_together(std::span<const named_command> all) override {
    for (const auto& c : all) to_.asks(process_, c);
    to_.together_[process_].insert(all.front().command.owner);
    auto replies = forwarding_store::acquire_together(all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool answered = replies && i < replies->size();
      to_.hears(process_, at_, all[i],
                answered  ? result<permits_reply>((*replies)[i])
                : replies ? result<permits_reply>(permits_reply{.outcome = permits_outcome::busy})
                          : result<permits_reply>(replies.error()));
    }
    // If the last name is refused, the others have been given back.
    const bool stays = replies && !replies->empty() &&
                       (replies->back().outcome == permits_outcome::granted ||
                        replies->back().outcome == permits_outcome::queued);
    for (std::size_t i = 0; stays && i < replies->size(); ++i) {
      to_.hears_of_a_grant(at_, all[i], (*replies)[i]);
    }
    return replies;
  }
  result<holdfast::store::admission> admit(const named_command& permits, std::string_view limiter,
                                           const holdfast::store::rate_command& take) override {
    to_.asks(process_, permits);
    auto both = forwarding_store::admit(permits, limiter, take);
    to_.hears(process_, at_, permits,
              both ? result<permits_reply>(both->permits) : result<permits_reply>(both.error()));
    return both;
  }
  // The simulated stores do not post.
  bool post(std::string_view, const permits_command&, listener&) override { return false; }

 private:
  conversation& to_;
  const int process_;
  const std::size_t at_;
};

std::unique_ptr<holdfast::store::session_store> conversation::heard(
    const process& by, std::size_t at, std::unique_ptr<holdfast::store::session_store> store) {
  return std::make_unique<listening_store>(*this, by.number, at, std::move(store));
}

void conversation::asks(int process, const named_command& c) {
  if (c.command.verb == permits_verb::release) given_up_.insert(c.command.owner);
  if (c.command.replaces) given_up_.insert(c.command.replaces);
  if (c.command.verb != permits_verb::acquire) return;
  ++requests_[{process, std::string(c.name)}].under_way;
  auto& question = asked_[{std::string(c.name), c.command.owner}];
  ++question.times;
  question.last = world_.now();
  if (question.counted_from + second <= question.last) {
    question.counted_from = question.last;
    question.counted = 0;
  }
  if (++question.counted > most_in_a_second && on_hurry) on_hurry(process, std::string(c.name));
}

void conversation::hears(int process, std::size_t at, const named_command& c,
                         const result<permits_reply>& reply) {
  if (c.command.verb != permits_verb::acquire) return;
  const place here{process, std::string(c.name)};
  auto& all = requests_[here];
  --all.under_way;
  const bool granted = reply && reply->outcome == permits_outcome::granted;
  if (granted || (!reply && reply.error().outcome_unknown)) {
    all.in_doubt = world_.now();
  } else if (reply) {
    all.answered = world_.now();
    all.sent = asked_[{here.second, c.command.owner}].last;
  }
  const bool refused = !reply && !reply.error().outcome_unknown;
  if (refused && on_refusal && asked(here.second, c.command.owner) == 1)
    on_refusal(at, here.second, c.command.owner);
  if (!granted) return;
  auto& those = grants_[here][c.command.owner];
  const bool known =
      std::any_of(those.begin(), those.end(), [&](const auto& one) { return one.at == at; });
  if (!known) those.push_back({at, reply->fence});
}

void conversation::hears_of_a_grant(std::size_t at, const named_command& c,
                                    const permits_reply& reply) const {
  const bool granted = reply.outcome == permits_outcome::granted;
  if (!granted || !on_grant || c.command.verb != permits_verb::acquire) return;
  on_grant(at, std::string(c.name), c.command.owner);
}

std::optional<std::uint64_t> conversation::greatest_fence(int process, const std::string& name,
                                                          std::uint64_t fence,
                                                          std::size_t majority) const {
  const auto here = grants_.find({process, name});
  if (here == grants_.end()) return std::nullopt;
  for (const auto& [owner, those] : here->second) {
    const bool its = std::any_of(those.begin(), those.end(),
                                 [&](const auto& one) { return one.fence == fence; });
    if (!its || those.size() < majority) continue;
    std::uint64_t greatest = 0;
    for (std::size_t i = 0; i < majority; ++i) greatest = std::max(greatest, those[i].fence);
    return greatest;
  }
  return std::nullopt;
}

bool conversation::all_was_answered(int process, const std::string& name, nanos since) const {
  const auto at = requests_.find({process, name});
  if (at == requests_.end()) return false;
  const auto& all = at->second;
  return all.under_way == 0 && all.sent >= since && all.in_doubt < all.answered;
}

}  // namespace simulation
