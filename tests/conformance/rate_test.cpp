#include <thread>

#include "conformance/cell.hpp"
#include "conformance/exclusive.hpp"
#include "harness/eventually.hpp"

namespace conformance {
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::rate_decision;
using holdfast::rate_limiter;
using holdfast::rate_rule;

/// So slow that nothing is refilled while a test runs.
constexpr auto slowly = 24h;

class rates : public suite {
 protected:
  static std::vector<rate_rule> rule(std::uint64_t tokens, std::chrono::microseconds per,
                                     std::uint64_t burst = 0) {
    return {{.tokens = tokens, .per = per, .burst = burst}};
  }
  rate_limiter three_{here_, name_, rule(3, slowly)};
  rate_limiter rival_{another(), name_, rule(3, slowly)};
};

INSTANTIATE_TEST_SUITE_P(stores, rates, testing::ValuesIn(cells({"rate_limiter"})), cell_name);

TEST_P(rates, a_bucket_admits_as_many_requests_as_it_has_tokens_from_any_session) {
  EXPECT_EQ(three_.try_take().rules.at(0).remaining, 2u);
  EXPECT_TRUE(rival_.try_take(2));
  const rate_decision d = three_.try_take();
  EXPECT_FALSE(d);
  EXPECT_EQ(d.rules.at(0).remaining, 0u);
  EXPECT_EQ(d.rules.at(0).limit, 3u);
  EXPECT_GT(d.wait, 7h) << "a third of a day";
  EXPECT_LE(d.wait, 8h);
  EXPECT_GT(d.rules.at(0).reset, 23h);
}

TEST_P(rates, many_requests_at_once_get_exactly_the_available_tokens) {
  rate_limiter hundred{here_, "many", rule(100, slowly)};
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      rate_limiter mine{another(), "many", rule(100, slowly)};
      for (int j = 0; j < 20; ++j) taken += mine.try_take().taken ? 1 : 0;
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(taken, 100);
}

TEST_P(rates, a_request_for_more_tokens_than_available_takes_no_token) {
  EXPECT_TRUE(three_.try_take(2));
  EXPECT_FALSE(rival_.try_take(2));
  EXPECT_TRUE(rival_.try_take(1));
}

TEST_P(rates, all_rules_give_tokens_or_no_rule_does) {
  const std::vector<rate_rule> rules{{.tokens = 5, .per = slowly, .name = "all"},
                                     {.tokens = 2, .per = slowly, .by = {"client"}, .name = "one"}};
  rate_limiter api{here_, "api", rules};
  EXPECT_TRUE(api.try_take(2, {{"client", "a"}}));
  const rate_decision no = api.try_take(1, {{"client", "a"}});
  EXPECT_FALSE(no);
  EXPECT_EQ(no.rules.at(0).remaining, 3u) << "the other rule gave nothing";
  EXPECT_EQ(no.tightest().rule, "one");
  EXPECT_TRUE(api.try_take(2, {{"client", "b"}}));
  EXPECT_FALSE(api.try_take(2, {{"client", "c"}})) << "one is left for all";
  EXPECT_EQ(api.peek(1, {{"client", "c"}}).rules.at(1).remaining, 2u);
  EXPECT_TRUE(api.try_take(1, {{"client", "c"}}));
}

TEST_P(rates, keys_are_composed_of_the_parts_that_a_rule_names) {
  const std::vector<rate_rule> rules{{.tokens = 2, .per = slowly, .by = {"api", "application"}},
                                     {.tokens = 3, .per = slowly, .by = {"group"}},
                                     {.tokens = 4, .per = slowly, .by = {"address"}}};
  rate_limiter gateway{here_, "gateway", rules};
  const auto ask = [&](const char* api, const char* group, const char* app, const char* from) {
    return gateway
        .try_take(1, {{"address", from}, {"application", app}, {"group", group}, {"api", api}})
        .taken;
  };
  EXPECT_TRUE(ask("orders", "free", "shop", "::1"));
  EXPECT_TRUE(ask("orders", "free", "shop", "::1"));
  EXPECT_FALSE(ask("orders", "gold", "shop", "::1")) << "twice for this application";
  EXPECT_TRUE(ask("stock", "free", "shop", "::1"));
  EXPECT_FALSE(ask("stock", "free", "desk", "::1")) << "three times for this group";
  EXPECT_TRUE(ask("stock", "gold", "desk", "::1"));
  EXPECT_FALSE(ask("sales", "gold", "till", "::1")) << "four times from this address";
  EXPECT_TRUE(ask("sales", "gold", "till", "::2"));
  EXPECT_EQ(reason_of([&] { (void)gateway.try_take(1, {{"api", "orders"}}); }),
            errc::invalid_argument);
}

TEST_P(rates, similar_keys_are_distinct) {
  rate_limiter l{here_, "keys", {{.tokens = 1, .per = slowly, .by = {"a", "b"}}}};
  const std::pair<const char*, const char*> keys[] = {
      {"x:y", "z"}, {"x", "y:z"}, {"x%3Ay", "z"}, {"", "x:y:z"}, {"x:y:z", ""},
      {"}", "{"},   {"'", "\""},  {"\\", "*"},    {"é", " "},    {"%", "%25"}};
  for (const auto& [a, b] : keys) EXPECT_TRUE(l.try_take(1, {{"a", a}, {"b", b}})) << a << b;
  for (const auto& [a, b] : keys) EXPECT_FALSE(l.try_take(1, {{"a", a}, {"b", b}})) << a << b;
  EXPECT_EQ(here_.names(), std::vector<std::string>{"keys"});
  for (const auto& bad : {std::string(256, 'a'), std::string("a\nb"), std::string("caf\xe9")}) {
    EXPECT_EQ(reason_of([&] { (void)l.try_take(1, {{"a", bad}, {"b", ""}}); }),
              errc::invalid_argument);
  }
}

// The longest possible key is read again; clients often choose the values.
TEST_P(rates, keys_that_are_too_long_together_are_refused_and_affect_no_other) {
  std::vector<std::string> parts;
  for (int i = 0; i < 16; ++i) parts.push_back("part" + std::to_string(i));
  const rate_rule rule{.tokens = 1, .per = 1h, .burst = 2, .by = parts, .name = "r"};
  rate_limiter limiter{here_, name_, {rule}};
  const auto key_of = [&](std::string_view value) {
    holdfast::rate_key key;
    for (const auto& part : parts) key.push_back({part, value});
    return key;
  };
  const std::string value(255, 'a');
  const std::string_view shorter = std::string_view(value).substr(1);
  const auto longest =
      key_of(shorter);  // with the rule's name and a colon before each: 4,081 bytes
  EXPECT_TRUE(limiter.try_take(1, longest));
  EXPECT_EQ(reason_of([&] { (void)limiter.try_take(1, key_of(value)); }), errc::invalid_argument)
      << "each value is short enough, and all together are not";
  EXPECT_TRUE(limiter.try_take(1, longest));
  EXPECT_FALSE(limiter.try_take(1, longest));
}

TEST_P(rates, a_bucket_that_has_filled_up_with_time_is_not_listed) {
  rate_limiter l{here_, "soon", {{.tokens = 1, .per = 50ms, .by = {"of"}}}};
  EXPECT_TRUE(l.try_take(1, {{"of", "one"}}));
  harness::eventually("it is full again", [&] { return here_.buckets("soon").empty(); });
}

TEST_P(rates, buckets_are_listed_from_the_emptiest_to_the_fullest) {
  EXPECT_TRUE(here_.buckets(name_).empty());
  const std::vector<rate_rule> rules{
      {.tokens = 10, .per = slowly, .by = {"a", "b"}, .name = "each"},
      {.tokens = 4, .per = slowly, .how = holdfast::refill::interval, .name = "all"}};
  for (const char* name : {"some:[x]*", "some:[x]y"}) {
    rate_limiter l{here_, name, rules};
    EXPECT_TRUE(l.try_take(1, {{"a", "x:%"}, {"b", ""}}));
    EXPECT_TRUE(l.try_take(2, {{"a", "y"}, {"b", "z"}}));
  }
  const auto buckets = here_.buckets("some:[x]*");
  ASSERT_EQ(buckets.size(), 3u);
  EXPECT_EQ(buckets[0].rule, "all");
  EXPECT_EQ(buckets[0].remaining, 1u);
  EXPECT_EQ(buckets[0].tokens, 4u);
  EXPECT_EQ(buckets[0].per, slowly);
  EXPECT_TRUE(buckets[0].key.empty());
  EXPECT_EQ(buckets[1].rule, "each");
  EXPECT_EQ(buckets[1].key, (std::vector<std::string>{"y", "z"}));
  EXPECT_EQ(buckets[1].remaining, 8u);
  EXPECT_EQ(buckets[1].limit, 10u);
  EXPECT_EQ(buckets[2].key, (std::vector<std::string>{"x:%", ""}));
  EXPECT_EQ(buckets[1].per * 10, buckets[1].tokens * slowly) << "ten a day";
  EXPECT_GT(buckets[1].full_in, 4h);
  EXPECT_LE(buckets[1].full_in, 5h);
  EXPECT_LT(buckets[1].unchanged_for, 1h);
  EXPECT_EQ(here_.buckets("some:[x]*", 1).size(), 1u);
  rate_limiter l{here_, "some:[x]*", rules};
  l.refund(2, {{"a", "y"}, {"b", "z"}});
  EXPECT_EQ(here_.buckets("some:[x]*").size(), 2u) << "a full one is none";
  holdfast::mutex m{here_, "held"};
  const auto held = m.acquire();
  EXPECT_TRUE(here_.buckets("held").empty());
}

TEST_P(rates, refilled_tokens_are_given_to_a_waiter) {
  rate_limiter fast{here_, "fast", rule(1000, 1s, 1)};
  EXPECT_TRUE(fast.try_take());
  for (int i = 0; i < 20; ++i) {
    const rate_decision d = fast.take();
    EXPECT_TRUE(d);
    EXPECT_GT(d.wait, 0us);
  }
}

TEST_P(rates, a_call_without_a_thread_behaves_the_same) {
  EXPECT_TRUE(async_take(three_, 3).future().get().value());
  EXPECT_FALSE(async_take(rival_, 1, {}, 1s).future().get().value()) << "known at once";
  std::stop_source stop;
  auto waits = async_take(rival_, 1, {}, {}, stop.get_token()).future();
  harness::eventually("it is reserved", [&] { return three_.peek().wait > slowly / 2; });
  stop.request_stop();
  EXPECT_EQ(waits.get().error().code, errc::cancelled);
  harness::eventually("it is given back", [&] { return three_.peek().wait < slowly / 2; });
  rate_limiter quick{here_, "quick", rule(1, 20ms)};
  EXPECT_TRUE(quick.try_take());
  EXPECT_TRUE(async_take(quick, 1).future().get().value());
}

TEST_P(rates, waiters_are_served_in_the_order_of_their_requests) {
  EXPECT_TRUE(three_.try_take(3));
  const auto first = three_.reserve(1, slowly);
  const auto second = rival_.reserve(1, slowly);
  EXPECT_TRUE(first);
  EXPECT_TRUE(second);
  EXPECT_GT(second.wait, first.wait);
  EXPECT_FALSE(three_.try_take()) << "it is in debt";
}

TEST_P(rates, a_wait_that_cannot_succeed_in_time_is_refused_at_once) {
  EXPECT_TRUE(three_.try_take(3));
  EXPECT_FALSE(three_.take_for(1, 1h));
  EXPECT_FALSE(three_.take_until(1, std::chrono::steady_clock::now() + 1h));
  EXPECT_FALSE(three_.take_for(1, -1h));
  EXPECT_FALSE(three_.reserve(1, 1h));
  three_.refund();
  EXPECT_TRUE(rival_.try_take());
}

TEST_P(rates, a_stopped_waiter_refunds_its_reservation) {
  EXPECT_TRUE(three_.try_take(3));
  std::stop_source stop;
  std::thread waiter([&] {
    const rate_decision d = rival_.take(1, {}, stop.get_token());
    EXPECT_FALSE(d);
    EXPECT_EQ(d.tokens, 0u);
  });
  harness::eventually("it waits", [&] { return three_.peek().wait > 9h; });
  stop.request_stop();
  waiter.join();
  harness::eventually("it is given back", [&] { return three_.peek().wait <= 8h; });
  EXPECT_FALSE(rival_.take(1, {}, stop.get_token())) << "it did not even ask";
}

TEST_P(rates, the_latest_reservation_is_refunded_in_full) {
  EXPECT_TRUE(three_.try_take(3));
  const auto d = three_.reserve(3, slowly);
  EXPECT_EQ(d.tokens, 3u);
  EXPECT_GT(three_.peek().wait, 24h);
  three_.refund(d);
  EXPECT_LE(three_.peek().wait, 8h) << "as if it had not been made";
  const auto other = rival_.reserve(2, slowly);
  EXPECT_TRUE(async_refund(rival_, other).future().get());
  EXPECT_LE(three_.peek().wait, 8h);
  EXPECT_EQ(reason_of([&] { three_.refund(three_.peek()); }), errc::invalid_argument);
}

TEST_P(rates, a_refund_does_not_move_later_reservations) {
  EXPECT_TRUE(three_.try_take(3));
  const auto first = three_.reserve(3, slowly);
  const auto second = rival_.reserve(1, 2 * slowly);
  three_.refund(first);
  const auto third = rival_.reserve(2, 2 * slowly);
  EXPECT_TRUE(third);
  EXPECT_GT(second.wait, 31h);
  EXPECT_GT(third.wait, 31h) << "two of three came back: with all, it were due after 24 hours";
  EXPECT_LE(third.wait, 32h);
}

TEST_P(rates, a_stopped_waiter_does_not_move_later_reservations) {
  rate_limiter one{here_, "one", rule(1, slowly)};
  EXPECT_TRUE(one.try_take());
  std::stop_source stop;
  std::thread waiter([&] { EXPECT_FALSE(one.take(1, {}, stop.get_token())); });
  harness::eventually("it waits", [&] { return one.peek().wait > 25h; });
  const auto later = one.reserve(1, 3 * slowly);
  stop.request_stop();
  waiter.join();
  EXPECT_GT(one.peek().wait, later.wait + 23h) << "else two go through at once";
}

TEST_P(rates, refunded_tokens_can_be_taken_again_and_no_others) {
  EXPECT_TRUE(three_.try_take(3));
  rival_.refund(2);
  EXPECT_EQ(three_.peek().rules.at(0).remaining, 2u);
  rival_.refund(2);
  rival_.refund(3);
  EXPECT_EQ(three_.peek().rules.at(0).remaining, 3u);
}

TEST_P(rates, a_decision_with_an_impossible_count_refunds_nothing) {
  auto d = three_.try_take();
  for (const std::uint64_t bad : {~std::uint64_t{0}, std::uint64_t{1} << 63U}) {
    d.tokens = bad;
    EXPECT_EQ(reason_of([&] { three_.refund(d); }), errc::invalid_argument) << bad;
    EXPECT_EQ(reason_of([&] { (void)async_refund(three_, d); }), errc::invalid_argument) << bad;
  }
  EXPECT_EQ(three_.peek().rules.at(0).remaining, 2u);
}

TEST_P(rates, a_peek_takes_no_tokens_and_predicts_the_next_take) {
  EXPECT_TRUE(three_.peek(3));
  EXPECT_TRUE(here_.names().empty());
  EXPECT_TRUE(three_.try_take(2));
  EXPECT_TRUE(three_.peek(1));
  EXPECT_FALSE(three_.peek(2));
  EXPECT_EQ(three_.peek(1).rules.at(0).remaining, 1u);
}

TEST_P(rates, the_tokens_of_an_interval_are_refilled_all_at_once) {
  rate_limiter l{here_,
                 "interval",
                 {{.tokens = 5, .per = slowly, .burst = 5, .how = holdfast::refill::interval}}};
  EXPECT_TRUE(l.try_take(5));
  const auto none = l.try_take();
  EXPECT_FALSE(none);
  EXPECT_GT(none.wait, 23h);
  EXPECT_EQ(none.rules.at(0).reset, none.wait);
}

TEST_P(rates, a_request_for_more_than_the_burst_is_refused_for_good) {
  for (const std::uint64_t bad : {std::uint64_t{0}, std::uint64_t{4}, ~std::uint64_t{0}}) {
    EXPECT_EQ(reason_of([&] { (void)three_.try_take(bad); }), errc::invalid_argument) << bad;
    EXPECT_EQ(reason_of([&] { (void)three_.take(bad); }), errc::invalid_argument) << bad;
    EXPECT_EQ(reason_of([&] { three_.refund(bad); }), errc::invalid_argument) << bad;
  }
  EXPECT_TRUE(here_.names().empty());
}

TEST_P(rates, other_rules_of_the_same_version_are_refused_while_it_is_in_use) {
  rate_limiter four{here_, name_, rule(4, slowly)};
  EXPECT_TRUE(three_.try_take());
  EXPECT_EQ(reason_of([&] { (void)four.try_take(); }), errc::capacity_mismatch);
  EXPECT_EQ(reason_of([&] { (void)four.peek(); }), errc::capacity_mismatch);
  EXPECT_EQ(three_.peek().rules.at(0).remaining, 2u);
  three_.refund();
  EXPECT_TRUE(four.try_take());
}

TEST_P(rates, changed_rules_apply_to_all_and_used_tokens_stay_used) {
  EXPECT_TRUE(rival_.try_take(2));
  three_.change_rules(rule(10, slowly), 1);
  EXPECT_EQ(three_.try_take().rules.at(0).remaining, 7u);
  EXPECT_EQ(rival_.try_take().rules.at(0).limit, 10u) << "also for those who do not know yet";
  three_.change_rules(rule(2, slowly), 2);
  EXPECT_FALSE(three_.try_take()) << "four are used";
  EXPECT_EQ(three_.peek().rules.at(0).limit, 2u);
  EXPECT_EQ(reason_of([&] { (void)rival_.try_take(3); }), errc::invalid_argument);
  EXPECT_EQ(reason_of([&] { three_.change_rules(rule(9, slowly), 2); }), errc::invalid_argument);
}

TEST_P(rates, a_refund_gives_nothing_to_a_rule_of_which_its_decision_took_nothing) {
  const auto before = three_.try_take(2);
  auto with_new = rule(3, slowly);
  with_new.push_back({.tokens = 2, .per = slowly, .name = "new"});
  three_.change_rules(with_new, 1);
  const auto after = three_.try_take();
  three_.refund(before);
  EXPECT_EQ(three_.peek().rules.at(1).remaining, 1u) << "as many as without that decision";
  EXPECT_TRUE(async_refund(three_, before).future().get());
  EXPECT_EQ(three_.peek().rules.at(1).remaining, 1u);
  three_.refund(after);
  EXPECT_EQ(three_.peek().rules.at(1).remaining, 2u);
}

TEST_P(rates, tokens_kept_in_the_process_cost_no_round_trip) {
  rate_limiter local{here_, "local", rule(100, slowly), {.local_tokens = 10, .local_time = 1h}};
  const auto before = here_.store_operations();
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(local.try_take()) << i;
  EXPECT_EQ(here_.store_operations() - before, 10u);
  EXPECT_FALSE(local.try_take());
  EXPECT_FALSE(local.try_take(2));
}

TEST_P(rates, a_process_that_cannot_reserve_many_tokens_takes_one) {
  rate_limiter local{here_, name_, rule(3, slowly), {.local_tokens = 3, .local_time = 1h}};
  EXPECT_TRUE(rival_.try_take());
  EXPECT_TRUE(local.try_take());
  EXPECT_TRUE(local.try_take());
  EXPECT_FALSE(local.try_take());
}

TEST_P(rates, a_process_that_takes_ahead_goes_on_when_another_program_makes_the_burst_smaller) {
  rate_limiter local{here_, name_, rule(3, slowly), {.local_tokens = 3, .local_time = 1h}};
  rival_.change_rules(rule(2, slowly), 1);
  EXPECT_TRUE(rival_.try_take());
  EXPECT_TRUE(local.try_take());
  EXPECT_FALSE(local.try_take());
  EXPECT_EQ(reason_of([&] { (void)local.try_take(3); }), errc::invalid_argument);
}

TEST_P(rates, a_full_bucket_leaves_nothing_in_the_store) {
  EXPECT_TRUE(three_.try_take());
  EXPECT_EQ(here_.show(name_).kind, "rate_limiter");
  const std::vector<std::string> lasting{name_};
  rate_limiter brief{here_, "brief", {{.tokens = 100, .per = 1s, .by = {"client"}}}};
  for (const char* client : {"a", "b", "c"}) EXPECT_TRUE(brief.try_take(5, {{"client", client}}));
  harness::eventually("it is forgotten", [&] { return here_.names() == lasting; });
  EXPECT_EQ(here_.show("brief").kind, "");
  EXPECT_TRUE(holdfast::mutex(here_, "brief").try_lock()) << "the name is free for anything";
}

TEST_P(rates, one_round_trip_decides_about_all_rules) {
  std::vector<rate_rule> rules;
  for (int i = 0; i < 16; ++i) rules.push_back({.tokens = 100, .per = slowly});
  rate_limiter many{here_, "many", rules};
  const auto before = here_.store_operations();
  EXPECT_TRUE(many.try_take(3));
  EXPECT_EQ(here_.store_operations() - before, 1u);
  EXPECT_EQ(many.peek().rules.size(), 16u);
  EXPECT_EQ(many.peek().rules.at(15).remaining, 97u);
}

TEST_P(rates, impossible_rules_are_refused) {
  const auto refused = [&](std::vector<rate_rule> rules, holdfast::rate_limiter_options o = {}) {
    return reason_of([&] { rate_limiter(here_, "n", std::move(rules), o); }) ==
           errc::invalid_argument;
  };
  constexpr auto huge = ~std::uint64_t{0};
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused(std::vector<rate_rule>(17)));
  EXPECT_TRUE(refused(rule(0, 1s)));
  EXPECT_TRUE(refused(rule(0, 1s, 5)));
  EXPECT_TRUE(refused(rule(1, 0s)));
  EXPECT_TRUE(refused(rule(1, -1s)));
  EXPECT_TRUE(refused(rule(1, 24h * 32)));
  EXPECT_TRUE(refused(rule(1, std::chrono::microseconds::max())));
  EXPECT_TRUE(refused(rule(huge, 1s)));
  EXPECT_TRUE(refused(rule(1, 1s, huge)));
  EXPECT_TRUE(refused(rule(999'983, 24h, 1'000'000))) << "not to be counted exactly";
  EXPECT_TRUE(refused(rule(1, 24h, 1'000'000))) << "comes back in 2,700 years";
  EXPECT_TRUE(refused({{.by = {""}}}));
  EXPECT_TRUE(refused({{.by = {"a\nb"}}}));
  EXPECT_TRUE(refused({{.name = "same"}, {.name = "same"}}));
  EXPECT_TRUE(refused({{.name = std::string(65, 'n')}}));
  EXPECT_TRUE(refused(rule(3, 1s), {.local_tokens = 4}));
  EXPECT_TRUE(refused(rule(3, 1s), {.local_tokens = 2, .local_time = 0ms}));
  EXPECT_NO_THROW(rate_limiter(here_, "n", rule(1'000'000'000, 1s)));
  EXPECT_NO_THROW(rate_limiter(here_, "n", rule(600, 1min, 1)));
  EXPECT_NO_THROW(rate_limiter(here_, "n", rule(1, 24h * 31, 100)));
}

}  // namespace
}  // namespace conformance
