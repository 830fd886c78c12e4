#include <array>
#include <limits>

#include "twin.hpp"

namespace twin {

using namespace holdfast::store;

namespace {

constexpr std::int64_t year_2026 = 1'790'000'000'000'000;
constexpr std::array<std::string_view, 4> peers{"p1", "p2", "p3", ""};
constexpr std::array<std::string_view, 4> notes{"", "host 12 program", "a  b\nc 'x' \"%d\" {}",
                                                "-"};

owner_id random_owner(harness::random& dice, int owners) {
  return {static_cast<std::uint64_t>(dice.between(0, 1)),
          static_cast<std::uint64_t>(dice.between(1, owners))};
}

/// The time advances by nothing, by little, to exactly where something ends, and beyond.
std::int64_t pass(harness::random& dice) {
  switch (dice.between(0, 7)) {
    case 0:
      return 0;
    case 1:
      return 1;
    case 2:
      return 1'000;
    case 3:
      return 250'000;
    case 4:
      return 500'000;
    case 5:
      return 1'000'000;
    case 6:
      return dice.between(0, 700'000);
    default:
      return dice.between(0, 12) * 250'000;
  }
}

/// The common parts of all commands of a history, most of the time.
struct scene {
  kind what = kind::mutex;
  std::uint32_t capacity = 1;
  int owners = 6;
  bool priorities = false;
  int linger = 0;  ///< of 2: nobody, some, all
  /// Little time passes, so that most are queued, and all wait.
  bool crowded = false;
};

scene random_scene(harness::random& dice) {
  scene s;
  s.owners = dice.between(1, 5);
  s.priorities = dice.one_in(3);
  const int linger = dice.between(0, 2);
  switch (dice.between(0, 6)) {
    case 0:
      s = {kind::semaphore, dice.between(2u, 6u), s.owners, s.priorities};
      break;
    case 1:
      s = {kind::shared_mutex, 1u << 30, s.owners, s.priorities};
      break;
    case 2:
      s = {kind::barrier, dice.between(1u, 4u), dice.between(1, 3), s.priorities};
      break;
    case 3:
      s = {kind::condition_variable, 1u << 30, s.owners, s.priorities};
      break;
    case 4:
      s = {kind::election, 1, s.owners, s.priorities};
      break;
    default:
      break;
  }
  s.linger = linger;
  s.crowded = dice.one_in(3);
  return s;
}

std::uint32_t random_weight(harness::random& dice, const scene& s) {
  if (s.what == kind::barrier) return 1;
  if (s.what == kind::condition_variable) return dice.between(1u, 3u);
  if (s.what == kind::shared_mutex) return dice.one_in(3) ? s.capacity : 1;
  return dice.between(1u, s.capacity);
}

permits_verb random_verb(harness::random& dice, const scene& s) {
  if (s.what == kind::condition_variable && dice.one_in(5)) return permits_verb::notify;
  // Behind a barrier that has opened, its participants ask.
  if (s.what == kind::barrier && dice.one_in(3)) return permits_verb::renew;
  constexpr std::array verbs{permits_verb::acquire, permits_verb::acquire, permits_verb::acquire,
                             permits_verb::acquire, permits_verb::renew,   permits_verb::renew,
                             permits_verb::release, permits_verb::release, permits_verb::resize,
                             permits_verb::inspect, permits_verb::release, permits_verb::evict};
  return dice.pick(verbs);
}

permits_command random_command(harness::random& dice, const scene& s) {
  permits_command c;
  c.verb = random_verb(dice, s);
  c.owner = random_owner(dice, s.owners);
  c.kind = dice.one_in(40) ? kind::semaphore : s.what;
  c.capacity = dice.one_in(40) ? s.capacity + 1 : s.capacity;
  // Nobody asks for another capacity, and the script has none.
  if (c.kind == kind::election || c.kind == kind::mutex) c.capacity = 1;
  c.weight = random_weight(dice, s);
  c.priority = s.priorities ? dice.between(-2, 2) : 0;
  c.wait = s.crowded || !dice.one_in(3);
  c.lease_us = dice.between(1, 8) * 250'000;
  c.queue_lease_us = dice.between(1, 8) * 250'000;
  c.outlives_session = dice.one_in(6);
  c.lingers = s.linger == 2 || (s.linger == 1 && dice.one_in(3));
  // A participant of a barrier replaces its entry in each phase, and names it when it asks, too.
  const unsigned replaces = s.what == kind::barrier ? 2u : 6u;
  const bool renews = s.what == kind::barrier && c.verb == permits_verb::renew;
  if ((c.verb == permits_verb::acquire || renews) && dice.one_in(replaces))
    c.replaces = random_owner(dice, s.owners);
  const bool leaves = c.verb == permits_verb::release || c.replaces;
  if (leaves && !dice.one_in(3)) c.secret = {dice.between(1u, 9u), dice.between(1u, 9u)};
  if (c.verb == permits_verb::acquire && dice.one_in(5))
    c.fence_at_least = static_cast<std::uint64_t>(year_2026 + dice.between(0, 12'000'000));
  if (c.verb == permits_verb::evict && dice.one_in(2)) c.owner = {};
  c.peer = dice.pick(peers);
  c.note = dice.pick(notes);
  return c;
}

}  // namespace

permits_history random_permits(harness::random& dice, int steps) {
  const scene s = random_scene(dice);
  permits_history h;
  std::int64_t now = year_2026;
  for (int i = 0; i < steps; ++i) {
    // At a barrier so little time passes that it opens now and then.
    const unsigned slow = s.crowded ? 10u : s.what == kind::barrier ? 3u : 1u;
    now += !dice.one_in(slow) ? dice.between(0, 1'000) : pass(dice);
    h.push_back({now, random_command(dice, s)});
  }
  h.push_back({now, {}});  // a query of the rest
  return h;
}

countdown_history random_countdown(harness::random& dice, int steps) {
  constexpr std::array verbs{countdown_verb::arrive, countdown_verb::arrive, countdown_verb::arrive,
                             countdown_verb::wait,   countdown_verb::wait,   countdown_verb::leave,
                             countdown_verb::inspect};
  const int owners = dice.between(1, 8);
  const auto count = dice.between(1u, 6u);
  countdown_history h;
  std::int64_t now = year_2026;
  for (int i = 0; i < steps; ++i) {
    now += dice.one_in(30) ? 61'000'000 : pass(dice);
    countdown_command c;
    c.verb = dice.one_in(30) ? countdown_verb::remove : dice.pick(verbs);
    c.owner = random_owner(dice, owners);
    c.count = dice.one_in(40) ? count + 1 : count;
    c.drop = dice.between(0u, 2u);
    c.queue_lease_us = dice.one_in(5) ? 0 : dice.between(1, 8) * 250'000;
    c.keep_us = dice.one_in(4) ? 300'000'000 : dice.between(1, 20) * 250'000;
    c.repeats_us = dice.one_in(4) ? dice.between(50, 200) * 1'000'000 : 0;
    c.peer = dice.pick(peers);
    c.note = dice.pick(notes);
    h.push_back({now, c});
  }
  h.push_back({now, {}});
  return h;
}

namespace {

/// A rule as primitives make them (tokens and a time without a common factor), and odd ones.
bucket_rule random_rule(harness::random& dice) {
  const std::int64_t burst = dice.one_in(4) ? dice.between(1, 1'000'000) : dice.between(1, 12);
  switch (dice.between(0, 3)) {
    case 0:  // all at once, after a while
      return {1, dice.between(1, 12), dice.between(1, 8) * 250'000, burst};
    case 1:  // one token every so many microseconds
      return {250'000, dice.between(1, 9), 1, burst * 250'000};
    case 2:  // many in a microsecond
      return {1, dice.between(1, 1000), 1, burst};
    default:
      return {dice.between(1, 1'000'000), dice.between(1, 7), dice.between(1, 3),
              1'000'000 * burst};
  }
}

constexpr std::array<std::string_view, 4> bucket_ids{"0", "client:a b", "api:x}:{y%:z",
                                                     "1:a\nb'\""};

}  // namespace

rate_history random_rate(harness::random& dice, int steps) {
  constexpr std::array verbs{rate_verb::take, rate_verb::take,   rate_verb::take,
                             rate_verb::take, rate_verb::refund, rate_verb::inspect};
  std::array<bucket_rule, bucket_ids.size()> rules;
  for (auto& r : rules) r = random_rule(dice);
  const auto used = dice.between(std::size_t{1}, bucket_ids.size());
  // Little time passes, under the same rules, so that most are promised future tokens.
  const bool crowded = dice.one_in(3);
  std::uint32_t newest = 0;
  rate_history h;
  std::int64_t now = year_2026;
  for (int i = 0; i < steps; ++i) {
    now += crowded && !dice.one_in(10) ? dice.between(0, 1'000)
           : dice.one_in(30)           ? -dice.between(0, 2'000'000)
                                       : pass(dice);
    if (dice.one_in(crowded ? 60 : 15)) {
      if (!dice.one_in(4)) ++newest;  // otherwise this is another one than the others take it for
      rules[dice.between(std::size_t{0}, rules.size() - 1)] = random_rule(dice);
    }
    rate_step s{now, {}, {}};
    s.command.verb = dice.pick(verbs);
    s.command.owner = random_owner(dice, 8);
    s.command.tokens = dice.one_in(5) ? dice.between(1, 20) : dice.between(1, 3);
    s.command.ahead_us = crowded || dice.one_in(3) ? dice.between(1, 60) * 1'000'000 : 0;
    s.command.version = dice.one_in(5) && newest > 0 ? newest - 1 : newest;
    for (std::size_t b = 0; b < used; ++b) {
      if (dice.one_in(4)) continue;
      s.buckets.push_back({bucket_ids[b], rules[b]});
      if (dice.one_in(3)) continue;
      // From long ago to for ever: mostly the near future.
      s.buckets.back().due_at = dice.one_in(9) ? std::numeric_limits<std::int64_t>::max()
                                               : now + dice.between(-2, 12) * pass(dice);
    }
    h.push_back(std::move(s));
  }
  return h;
}

}  // namespace twin
