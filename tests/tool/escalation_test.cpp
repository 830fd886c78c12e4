#include "tool/escalation.hpp"

#include <gtest/gtest.h>

#include "tool/duration.hpp"

namespace holdfast::tool {

using namespace std::chrono_literals;
using step = escalation::step;
using cause = escalation::cause;

namespace {

constexpr boot_time start{1000s};
constexpr escalation::terms gentle{on_lost::term, 5s, 250ms, forever};

escalation::terms with(on_lost action) {
  auto t = gentle;
  t.on_lost = action;
  return t;
}

constexpr escalation::lease_view until(boot_time ends) { return {ends, false}; }
constexpr escalation::lease_view gone{start, true};

run_options options(std::chrono::milliseconds ttl, std::optional<std::chrono::nanoseconds> grace) {
  run_options o;
  o.take.ttl = ttl;
  o.kill_after = grace;
  return o;
}

}  // namespace

TEST(escalation, a_renewed_lease_leaves_the_child_alone) {
  escalation e{gentle};
  for (auto now = start; now < start + 1h; now += 10s)
    EXPECT_EQ(e.due(now, until(now + 20s)), step::none);
  EXPECT_EQ(e.why(), cause::none);
}

TEST(escalation, term_comes_so_early_that_kill_lands_before_the_lease_ends) {
  escalation e{gentle};
  const auto lease = until(start + 30s);
  EXPECT_EQ(e.next(lease), start + 30s - 250ms - 5s);
  EXPECT_EQ(e.due(e.next(lease) - 1ns, lease), step::none);
  EXPECT_EQ(e.due(e.next(lease), lease), step::terminate);
  EXPECT_EQ(e.next(lease), start + 30s - 250ms);
  EXPECT_EQ(e.due(e.next(lease) - 1ns, lease), step::none);
  EXPECT_EQ(e.due(e.next(lease), lease), step::kill);
  EXPECT_EQ(e.why(), cause::lost);
}

TEST(escalation, kill_does_not_wait_for_the_whole_grace_if_the_lease_ends_before) {
  escalation e{gentle};
  const auto lease = until(start + 10s);
  EXPECT_EQ(e.due(start + 8s, lease), step::terminate);  // we were late
  EXPECT_EQ(e.next(lease), start + 10s - 250ms);
}

TEST(escalation, a_lock_with_a_new_holder_gives_the_child_its_whole_grace) {
  escalation e{gentle};
  EXPECT_EQ(e.due(start, gone), step::terminate);
  EXPECT_EQ(e.next(gone), start + 5s);
  EXPECT_EQ(e.due(start + 5s, gone), step::kill);
}

TEST(escalation, each_step_is_taken_once) {
  escalation e{gentle};
  EXPECT_EQ(e.due(start, gone), step::terminate);
  EXPECT_EQ(e.due(start, gone), step::none);
  EXPECT_EQ(e.due(start + 5s, gone), step::kill);
  EXPECT_EQ(e.due(start + 6s, gone), step::none);
  EXPECT_EQ(e.next(gone), forever);
}

TEST(escalation, a_renewal_after_term_does_not_call_it_back) {
  escalation e{gentle};
  EXPECT_EQ(e.due(start + 25s, until(start + 30s)), step::terminate);
  EXPECT_EQ(e.due(start + 30s, until(start + 55s)), step::kill);
}

TEST(escalation, on_lost_kill_waits_to_the_last_moment_and_sends_no_term) {
  escalation e{with(on_lost::kill)};
  const auto lease = until(start + 30s);
  EXPECT_EQ(e.next(lease), start + 30s - 250ms);
  EXPECT_EQ(e.due(start + 30s - 250ms, lease), step::kill);
  EXPECT_EQ(escalation{with(on_lost::kill)}.due(start, gone), step::kill);
}

TEST(escalation, on_lost_warn_never_touches_the_child) {
  escalation e{with(on_lost::warn)};
  EXPECT_EQ(e.due(start + 1h, gone), step::none);
  EXPECT_EQ(e.next(gone), forever);
  EXPECT_EQ(e.backstop(gone), forever);
  EXPECT_EQ(e.why(), cause::none);
}

TEST(escalation, max_run_ends_the_child_also_while_the_lock_is_held) {
  auto terms = with(on_lost::warn);
  terms.max_run_at = start + 1min;
  escalation e{terms};
  const auto lease = until(start + 1h);
  EXPECT_EQ(e.next(lease), start + 1min);
  EXPECT_EQ(e.due(start + 1min, lease), step::terminate);
  EXPECT_EQ(e.why(), cause::max_run);
  EXPECT_EQ(e.due(start + 1min + 5s, lease), step::kill);
}

TEST(escalation, a_lease_that_ends_during_the_grace_of_max_run_shortens_it) {
  auto terms = gentle;
  terms.kill_after = 1h;
  terms.max_run_at = start;
  escalation e{terms};
  EXPECT_EQ(e.due(start, until(start + 2h)), step::terminate);
  EXPECT_EQ(e.next(until(start + 20s)), start + 20s - 250ms);
}

TEST(escalation, the_dead_man_acts_between_our_kill_and_the_end_of_the_lease) {
  escalation e{gentle};
  const auto lease = until(start + 30s);
  EXPECT_GT(e.backstop(lease), start + 30s - gentle.slack);
  EXPECT_LT(e.backstop(lease), start + 30s);
  EXPECT_EQ(e.due(start, gone), step::terminate);
  EXPECT_GT(e.backstop(gone), start + 5s);
}

TEST(escalation, the_default_grace_fits_into_every_lease) {
  for (const auto ttl : {100ms, 1000ms, 9999ms, 30'000ms, 86'400'000ms}) {
    const auto o = options(ttl, default_kill_after(ttl));
    EXPECT_EQ(impossible_times(o, 0s), "") << ttl.count();
    EXPECT_GT(ttl * 2 / 3, *o.kill_after + slack_for(ttl)) << "no TERM while renewals work";
  }
}

// On ZooKeeper, etcd and with mode=session the store's session ends before the lease.
TEST(escalation, a_lease_that_the_store_cuts_short_shortens_the_grace) {
  EXPECT_EQ(certain_length(30s, 29s), 30s);
  EXPECT_EQ(certain_length(30s, 20s), 30s);
  EXPECT_EQ(certain_length(30s, 4s), 4s);
  auto o = options(30s, std::nullopt);
  EXPECT_EQ(grace_of(o, 30s), 5s);
  EXPECT_EQ(grace_of(o, 3s), 1s);
  o.kill_after = 6s;
  EXPECT_EQ(grace_of(o, 30s), 6s);
  EXPECT_EQ(grace_of(o, 3s), 1s);
  o.on_lost = on_lost::kill;
  EXPECT_EQ(grace_of(o, 3s), 6s) << "only --max-run sends TERM then";
}

TEST(escalation, a_grace_over_a_third_of_the_lease_is_refused_and_the_longest_is_named) {
  const std::string why = impossible_times(options(30s, 11s), 0s);
  EXPECT_EQ(why,
            "--kill-after 11s is longer than a third of --ttl 30s; at most 10s fits (two thirds "
            "of the lease are for renewals); or --ttl 33s");
  EXPECT_TRUE(impossible_times(options(9s, 4567ms), 0s).ends_with("or --ttl 14s"));
  auto relaxed = options(30s, 11s);
  relaxed.on_lost = on_lost::kill;
  EXPECT_EQ(impossible_times(relaxed, 0s), "");
}

TEST(escalation, a_grace_that_fits_into_no_lease_is_refused_without_one) {
  const std::pair<std::chrono::hours, std::string> graces[]{
      {24h * 20, "20d"}, {24h * 40'000, "40000d"}, {24h * 100'000, "100000d"}};
  for (const auto& [grace, shown] : graces)
    EXPECT_EQ(impossible_times(options(30s, grace), 0s),
              "--kill-after " + shown +
                  " is longer than a third of --ttl 30s; at most 10s fits (two thirds of the lease "
                  "are for renewals)");
}

TEST(escalation, a_watchdog_shorter_than_the_renewals_is_refused_with_a_lease_that_fits) {
  const std::string why = impossible_times(options(30s, std::nullopt), 10s);
  EXPECT_NE(why.find("--ttl 15s"), std::string::npos) << why;
  EXPECT_EQ(impossible_times(options(15s, std::nullopt), 10s), "");
}

}  // namespace holdfast::tool
