#include <algorithm>
#include <holdfast/rate_limiter.hpp>
#include <iterator>

#include "c/queue.hpp"
#include "c/session.hpp"

namespace holdfast::c_abi {

struct limiter_handle final : named<rate_limiter> {
  limiter_handle(const session& s, std::string name, std::vector<rate_rule> rules,
                 rate_limiter_options o)
      : named(s, std::move(name), rules, o) {
    for (auto& r : rules) {
      names.push_back(r.name.empty() ? std::to_string(names.size()) : std::move(r.name));
    }
  }
  std::vector<std::string> names;  ///< of the rules, in order
};

namespace {

rate_rule rule_of(const holdfast_rule& given) {
  rate_rule r;
  r.tokens = given.tokens;
  r.per = std::chrono::microseconds(given.per_us);
  r.burst = given.burst;
  r.how = given.interval != 0 ? refill::interval : refill::greedy;
  r.name = text_or_nothing(given.name);
  require_array(given.by, given.by_count, "by");
  for (std::uint32_t i = 0; i < given.by_count; ++i) r.by.push_back(text_of(given.by[i], "by"));
  return r;
}

/// Views into the caller's strings.
rate_key key_of(const holdfast_part* key, std::uint32_t parts) {
  require_array(key, parts, "key");
  rate_key all;
  for (std::uint32_t i = 0; i < parts; ++i) {
    if (key[i].part == nullptr || key[i].value == nullptr) {
      refuse(errc::invalid_argument, "key: a part or its value is NULL");
    }
    all.push_back({key[i].part, key[i].value});
  }
  return all;
}

void put_decision(holdfast_decision& there, const rate_decision& d) {
  there.taken = d.taken ? 1 : 0;
  there.wait_us = d.wait.count();
  const rate_state& nearest = d.tightest();
  there.limit = nearest.limit;
  there.remaining = nearest.remaining;
  there.reset_us = nearest.reset.count();
  put_text(there.rule, nearest.rule);
  there.tokens = d.tokens;
  const std::size_t rules = std::min(d.rules.size(), std::size(there.due_us));
  for (std::size_t i = 0; i < rules; ++i) there.due_us[i] = d.rules[i].due.count();
}

/// The parts of a decision that a refund needs.
rate_decision taken_by(const holdfast_decision& given, const limiter_handle& of) {
  rate_decision d;
  d.taken = given.taken != 0;
  d.tokens = given.tokens;
  for (std::size_t i = 0; i < of.names.size(); ++i) {
    d.rules.emplace_back().rule = of.names[i];
    d.rules.back().due = std::chrono::microseconds(given.due_us[i]);
  }
  return d;
}

/// Asks for a decision and writes it. A refusal is no error, but a cancelled wait is.
template <class Ask>
int decide(holdfast_limiter* limiter, const holdfast_part* key, std::uint32_t parts,
           holdfast_decision* decision, holdfast_error* why, Ask ask, const waiting& how = {}) {
  return guarded(why, [&]() -> status {
    out_struct there(decision, "decision");
    const auto of = get<limiter_handle>(limiter, "limiter");
    const rate_decision d = ask(of->itself, key_of(key, parts));
    put_decision(*there, d);
    if (!d.taken && how.stop.stop_requested()) return how.in_vain("take", of->what());
    return done{};
  });
}

}  // namespace

}  // namespace holdfast::c_abi

using namespace holdfast::c_abi;

extern "C" {

int holdfast_limiter_open(holdfast_session* session, const char* name, const holdfast_rule* rules,
                          uint32_t count, uint64_t local_tokens, holdfast_limiter** limiter,
                          holdfast_error* why) {
  return guarded(why, [&] {
    auto& there = out(limiter, "limiter");
    require_array(rules, count, "rules");
    std::vector<holdfast::rate_rule> all;
    all.reserve(count);
    for (uint32_t i = 0; i < count; ++i) all.push_back(rule_of(rules[i]));
    holdfast::rate_limiter_options o;
    o.local_tokens = local_tokens;
    give(&there, std::make_shared<limiter_handle>(session_visit(session).itself(),
                                                  text_of(name, "name"), std::move(all), o));
  });
}

int holdfast_limiter_take(holdfast_limiter* limiter, uint64_t n, const holdfast_part* key,
                          uint32_t parts, const holdfast_wait* how, holdfast_decision* decision,
                          holdfast_error* why) {
  waiting w;
  const int wrong = guarded(why, [&] {
    w = read(how);
    if (!w.to) return;
    const visit here(limiter);
    auto& of = here.as<limiter_handle>("limiter");
    // So that the event needs no memory later.
    const auto decided = std::make_shared<holdfast_decision>();
    begin(async_take(of.itself, n, key_of(key, parts), w.limit, w.stop), w,
          [decided](holdfast::rate_decision&& d, event_of& e) {
            put_decision(*decided, d);
            e.number = decided->taken;
            e.wait_us = decided->wait_us;
            e.decided = decided;
          });
  });
  if (wrong != HOLDFAST_OK || w.to) return wrong;
  return decide(
      limiter, key, parts, decision, why,
      [&](holdfast::rate_limiter& of, const holdfast::rate_key& of_key) {
        const bool tries = w.is_try() && !w.stop.stop_requested();
        return tries ? of.try_take(n, of_key) : of.take_for(n, w.limit, of_key, w.stop);
      },
      w);
}

int holdfast_limiter_reserve(holdfast_limiter* limiter, uint64_t n, int64_t longest_wait_us,
                             const holdfast_part* key, uint32_t parts, holdfast_decision* decision,
                             holdfast_error* why) {
  return decide(limiter, key, parts, decision, why,
                [&](holdfast::rate_limiter& of, const holdfast::rate_key& of_key) {
                  return of.reserve(n, std::chrono::microseconds(longest_wait_us), of_key);
                });
}

int holdfast_limiter_peek(holdfast_limiter* limiter, uint64_t n, const holdfast_part* key,
                          uint32_t parts, holdfast_decision* decision, holdfast_error* why) {
  return decide(limiter, key, parts, decision, why,
                [&](const holdfast::rate_limiter& of, const holdfast::rate_key& of_key) {
                  return of.peek(n, of_key);
                });
}

int holdfast_limiter_refund(holdfast_limiter* limiter, uint64_t n, const holdfast_part* key,
                            uint32_t parts, holdfast_error* why) {
  return guarded(
      why, [&] { get<limiter_handle>(limiter, "limiter")->itself.refund(n, key_of(key, parts)); });
}

int holdfast_limiter_give_back(holdfast_limiter* limiter, const holdfast_decision* taken,
                               const holdfast_part* key, uint32_t parts, holdfast_error* why) {
  return guarded(why, [&] {
    const auto given = read(taken, "taken");
    const auto of = get<limiter_handle>(limiter, "limiter");
    of->itself.refund(taken_by(given, *of), key_of(key, parts));
  });
}

}  // extern "C"
