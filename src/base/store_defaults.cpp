#include <holdfast/store/state_store.hpp>
#include <holdfast/store/store.hpp>

// The default functions of the ports, for stores without a better implementation.
namespace holdfast::store {

namespace {
failure no_rate_limiter() {
  return {errc::unsupported,
          "this store has no rate_limiter; docs/matrix.md says which stores have it"};
}
}  // namespace

result<rate_reply> session_store::rate(std::string_view, const rate_command&) {
  return no_rate_limiter();
}

result<bucket_list> session_store::buckets(std::string_view) { return no_rate_limiter(); }

std::vector<result<permits_reply>> session_store::execute_batch(
    std::span<const named_command> batch) {
  std::vector<result<permits_reply>> replies;
  replies.reserve(batch.size());
  for (const auto& r : batch) replies.push_back(permits(r.name, r.command));
  return replies;
}

namespace {

status take_back(session_store& from, std::span<const named_command> held) {
  status all = done{};
  for (const auto& one : held) {
    const permits_command back{.verb = permits_verb::release, .owner = one.command.owner};
    if (auto reply = from.permits(one.name, back); !reply) all = std::move(reply.error());
  }
  return all;
}

/// After a failure the caller cleans up. Something may be held by then, whatever the failed request
/// has done.
failure in_doubt(failure f) {
  f.outcome_unknown = true;
  return f;
}

}  // namespace

result<standing> session_store::standing_of(std::string_view, const owner_id&) {
  return failure{errc::unsupported,
                 "this store has nothing that your own transaction could compare with a lease: "
                 "have the resource compare the fence (guard::fenced_update, guard::fenced_set)"};
}

result<std::vector<permits_reply>> session_store::acquire_together(
    std::span<const named_command> all) {
  std::vector<permits_reply> replies;
  for (const auto& one : all) {
    auto reply = permits(one.name, one.command);
    if (!reply && replies.empty()) return std::move(reply.error());
    if (!reply) return in_doubt(std::move(reply.error()));
    replies.push_back(std::move(*reply));
    if (replies.back().outcome == permits_outcome::granted) continue;
    if (one.command.wait) break;
    auto back = take_back(*this, all.first(replies.size() - 1));
    if (!back) return in_doubt(std::move(back.error()));
    break;
  }
  return replies;
}

result<admission> session_store::admit(const named_command& asks, std::string_view limiter,
                                       const rate_command& take) {
  auto held = permits(asks.name, asks.command);
  if (!held) return std::move(held.error());
  admission both{std::move(*held), {}};
  if (both.permits.outcome != permits_outcome::granted) return both;
  auto tokens = rate(limiter, take);
  if (!tokens) return in_doubt(std::move(tokens.error()));
  both.tokens = std::move(*tokens);
  if (both.tokens->outcome == rate_outcome::granted) return both;
  if (auto back = take_back(*this, std::span(&asks, 1)); !back)
    return in_doubt(std::move(back.error()));
  return both;
}

result<store::identity> session_store::identify() { return store::identity{url(), {}}; }

result<std::optional<std::chrono::microseconds>> session_store::remembers_for() {
  auto who = identify();
  if (!who) return std::move(who.error());
  return who->up_for;
}

bool session_store::permits_later(std::string_view name, const permits_command& command,
                                  std::function<void(result<permits_reply>)> then) {
  then(permits(name, command));
  return false;
}

std::vector<status> state_store::transact(std::span<const step> steps) {
  std::vector<status> statuses;
  statuses.reserve(steps.size());
  for (const auto& s : steps) statuses.push_back(transact(s.name, *s.change));
  return statuses;
}

std::vector<std::string> state_store::tell_all(std::span<const notification> all) {
  std::vector<std::string> ended;
  for (const notification& to : all) {
    if (!tell(to)) ended.push_back(to.peer);
  }
  return ended;
}

result<std::vector<state_store::entry>> state_store::walk(std::string_view, std::size_t) {
  return entries();
}

status state_store::transact_together(std::span<const step>, const judge&) {
  return failure{errc::unsupported, "this store has no transaction over several names"};
}

}  // namespace holdfast::store
