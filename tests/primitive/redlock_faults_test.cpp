#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <future>

#include "harness/concurrently.hpp"
#include "harness/next_wake.hpp"
#include "harness/passing_on.hpp"
#include "primitive/quorum_stage.hpp"

// Faults in the middle of a vote, a renewal or a release, on a clock that stands still.
namespace {

using namespace quorum_test;
using holdfast::boot_time;
using holdfast::errc;
using holdfast::event_kind;
using holdfast::redlock;
using holdfast::vote;
using holdfast::store::identity;
using holdfast::store::permits_command;
using holdfast::store::permits_reply;

template <class F>
errc reason_of(F f) {
  try {
    f();
  } catch (const holdfast::error& e) {
    return e.reason();
  }
  return errc{};
}

/// A node's special behaviour.
struct odd_ways {
  std::atomic<bool> restarts_when_asked{false};
  std::atomic<bool> restarted{false};
  std::atomic<int> busy_releases{0};
  std::atomic<int> releases{0};
  std::atomic<int> identified{0};
  std::atomic<bool> hangs_when_identified{false};
};

class odd_node final : public harness::passing_on {
 public:
  odd_node(std::unique_ptr<session_store> inner, std::shared_ptr<odd_ways> ways)
      : passing_on(std::move(inner)), ways_(std::move(ways)) {}

  holdfast::result<identity> identify() override {
    ++ways_->identified;
    ways_->hangs_when_identified.wait(true);
    return identity{url(), up_for()};
  }
  holdfast::result<std::optional<std::chrono::microseconds>> remembers_for() override {
    return up_for();
  }
  holdfast::result<permits_reply> permits(std::string_view name,
                                          const permits_command& c) override {
    if (c.verb == verb::acquire && ways_->restarts_when_asked) ways_->restarted = true;
    if (c.verb == verb::release) {
      ++ways_->releases;
      if (ways_->busy_releases-- > 0) {
        return holdfast::failure{errc::busy, "another program keeps the file locked"};
      }
    }
    return passing_on::permits(name, c);
  }

 private:
  std::optional<std::chrono::microseconds> up_for() const { return ways_->restarted ? 0s : 1h; }

  const std::shared_ptr<odd_ways> ways_;
};

class redlock_faults : public testing::TestWithParam<form> {
 protected:
  static constexpr std::size_t nodes = 3;

  /// `twins`: the first two are one store.
  redlock make_odd(holdfast::redlock_options o = {}, bool twins = false) {
    std::vector<holdfast::session> sessions;
    for (std::size_t i = 0; i < nodes; ++i) {
      holdfast::session_options options;
      options.clock = w_.clock;
      options.observer = w_.seen;
      ways_.push_back(std::make_shared<odd_ways>());
      options.decorate = [way = ways_.back()](std::unique_ptr<holdfast::store::session_store> inner)
          -> std::unique_ptr<holdfast::store::session_store> {
        return std::make_unique<odd_node>(std::move(inner), way);
      };
      if (!twins || i != 1) ++number_;
      sessions.push_back(
          holdfast::open("memory:odd-" + std::to_string(number_) + "-" + std::to_string(getpid()),
                         std::move(options)));
      odd_sessions_.push_back(sessions.back());
    }
    return redlock(std::move(sessions), "job", std::move(o));
  }
  /// Each node hangs with a renewal under way.
  void hang_renewals_of(client& a) {
    std::vector<std::size_t> before;
    for (const auto& way : a.ways) {
      way->hang(verb::acquire);
      before.push_back(way->count(verb::acquire));
    }
    w_.clock->advance(10s);
    for (std::size_t i = 0; i < nodes; ++i) a.ways[i]->await(verb::acquire, before[i] + 1);
  }
  /// The same, until the renewal has failed.
  void fail_renewals_of(client& a) {
    hang_renewals_of(a);
    w_.clock->advance(5s);  // a sixth of the lease
    w_.seen->await(event_kind::renew_failed);
  }
  /// A lease lasts for 30 s. Threads that wake may advance the clock while a busy one releases.
  void comes_free_long_before_the_lease_ends() {
    const auto then = w_.clock->now();
    harness::eventually("free everywhere", [&] {
      harness::to_next_wake(*w_.clock, 1s);
      return w_.held_at() == 0;
    });
    EXPECT_LT(w_.clock->now() - then, 15s);
  }
  std::size_t held_at_odd() const {
    std::size_t n = 0;
    for (const auto& s : odd_sessions_) n += s.show("job").holders.size();
    return n;
  }
  template <class Future>
  static auto get(Future& f) {
    harness::eventually("the end of it",
                        [&] { return f.wait_for(0s) == std::future_status::ready; });
    return f.get();
  }

  static inline std::atomic<int> number_{0};
  world w_{nodes};
  std::vector<std::shared_ptr<odd_ways>> ways_;
  std::vector<holdfast::session> odd_sessions_;
  const in_form do_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(forms, redlock_faults,
                         testing::Values(form::by_a_thread, form::without_a_thread),
                         [](const auto& cell) { return name_of(cell.param); });

TEST_P(redlock_faults, a_node_that_restarts_during_a_vote_has_no_vote) {
  auto lock = make_odd({.trust_after = 1min});
  for (const std::size_t i : {0U, 1U}) ways_[i]->restarts_when_asked = true;
  EXPECT_EQ(reason_of([&] { (void)do_.try_acquire(lock); }), errc::unavailable);
  const auto votes = lock.last_votes();
  EXPECT_EQ(votes[0], vote::untrusted);
  EXPECT_EQ(votes[1], vote::untrusted);
  harness::eventually("given back there too", [&] { return held_at_odd() == 0; });
}

TEST_P(redlock_faults, a_node_that_is_up_for_long_has_its_vote) {
  auto lock = make_odd({.trust_after = 1min});
  EXPECT_TRUE(do_.try_acquire(lock));
}

TEST_P(redlock_faults, no_caller_takes_it_before_it_is_known_whether_a_store_votes_twice) {
  auto lock = make_odd({}, true);
  for (const auto& way : ways_) way->hangs_when_identified = true;
  std::atomic<int> began{0};
  const auto take = [&] {
    ++began;
    return reason_of([&] { (void)do_.try_acquire(lock); });
  };
  auto first = harness::concurrently(take);
  harness::eventually("the nodes are asked", [&] { return ways_[2]->identified == 1; });
  auto second = harness::concurrently(take);
  harness::eventually("both have begun", [&] { return began == 2; });
  for (const auto& way : ways_) {
    way->hangs_when_identified = false;
    way->hangs_when_identified.notify_all();
  }
  EXPECT_EQ(get(first), errc::invalid_argument);
  EXPECT_EQ(get(second), errc::invalid_argument);
  EXPECT_EQ(held_at_odd(), 0U);
}

TEST_P(redlock_faults, a_release_that_a_busy_store_refused_is_tried_again) {
  auto lock = make_odd();
  auto held = do_.acquire(lock);
  harness::eventually("everywhere", [&] { return held_at_odd() == nodes; });
  for (const auto& way : ways_) way->busy_releases = 1;
  EXPECT_EQ(do_.release(std::move(held)), errc::unavailable);
  EXPECT_EQ(w_.seen->count(event_kind::release_failed), 1U);
  EXPECT_EQ(w_.seen->count(event_kind::released), 0U) << "a majority of the stores does not know";
  harness::eventually("told again", [&] { return held_at_odd() == 0; });
  for (const auto& way : ways_) EXPECT_GE(way->releases, 2);
}

// One fails, one hangs, one grants: nothing is decided, each time.
TEST_P(redlock_faults, a_renewal_that_stays_undecided_is_tried_until_the_lease_ends) {
  client a(w_);
  auto held = do_.acquire(a.lock);
  a.settle();
  a.ways[1]->set(verb::acquire, fault::drop_request);
  a.ways[2]->hang(verb::acquire);
  const auto before = a.ways[0]->count(verb::acquire);
  w_.clock->advance(10s);
  for (std::size_t round = 1; round <= 3; ++round) {
    a.ways[0]->await(verb::acquire, before + round);
    w_.clock->advance(5s);  // a sixth of the lease: it has failed
    w_.seen->await(event_kind::renew_failed, round);
    if (round < 3) w_.clock->advance(1s);
  }
  EXPECT_EQ(held.state(), holdfast::lease_state::suspect);
  a.ways[1]->set(verb::acquire, fault::none);
  w_.clock->advance(1s);
  w_.seen->await(event_kind::held_again);
  EXPECT_NO_THROW(held.check());
  a.ways[2]->let_go();  // otherwise the release waits for it, on a clock that stands still
}

TEST_P(redlock_faults, a_node_that_hangs_gets_one_renewal_at_a_time) {
  client a(w_);
  auto held = do_.acquire(a.lock);
  a.settle();
  a.ways[2]->hang(verb::acquire);
  const auto before = a.ways[2]->count(verb::acquire);
  const auto released = a.ways[2]->count(verb::release);
  for (std::size_t i = 1; i <= 8; ++i) {
    w_.clock->advance(10s);
    w_.seen->await(event_kind::renewed, i);
  }
  a.ways[2]->let_go();
  EXPECT_FALSE(do_.release(std::move(held)));
  a.ways[2]->await(verb::release, released + 1);
  EXPECT_EQ(a.ways[2]->count(verb::acquire), before + 1) << "each before the release";
}

TEST_P(redlock_faults, nodes_that_hung_renew_the_lease_as_soon_as_they_answer_again) {
  client a(w_);
  auto held = do_.acquire(a.lock);
  a.settle();
  fail_renewals_of(a);
  w_.clock->advance(1s);  // the next round, in which there is nobody to ask
  for (const auto& way : a.ways) way->let_go();
  w_.seen->await(event_kind::held_again);
  EXPECT_FALSE(do_.release(std::move(held)));
}

// Answers that come a little too late each time would end the lease, though each node renews it.
TEST_P(redlock_faults, answers_that_come_when_their_round_has_failed_renew_the_lease) {
  client a(w_);
  auto held = do_.acquire(a.lock);
  a.settle();
  fail_renewals_of(a);
  for (const auto& way : a.ways) way->let_go();
  w_.seen->await(event_kind::held_again);
  EXPECT_GT(held.remaining(), 20s);
  EXPECT_FALSE(do_.release(std::move(held)));
}

// The release waits for the nodes that granted it last.
TEST_P(redlock_faults, a_late_answer_to_a_renewal_is_the_vote_of_its_node) {
  client a(w_);
  auto held = do_.acquire(a.lock);
  a.settle();
  for (const std::size_t i : {1U, 2U}) a.ways[i]->set(verb::acquire, fault::drop_request);
  w_.clock->advance(10s);
  w_.seen->await(event_kind::renew_failed, 1);
  std::vector<std::size_t> before;
  for (const std::size_t i : {1U, 2U}) {
    a.ways[i]->set(verb::acquire, fault::none);
    a.ways[i]->hang(verb::acquire);
    before.push_back(a.ways[i]->count(verb::acquire));
  }
  w_.clock->advance(1s);  // the next renewal
  for (const std::size_t i : {1U, 2U}) a.ways[i]->await(verb::acquire, before[i - 1] + 1);
  w_.clock->advance(5s);
  w_.seen->await(event_kind::renew_failed, 2);
  for (const std::size_t i : {1U, 2U}) a.ways[i]->let_go();
  w_.seen->await(event_kind::held_again);
  harness::eventually("all votes are there",
                      [&] { return held.votes() == std::vector(nodes, holdfast::vote::granted); });
  EXPECT_FALSE(do_.release(std::move(held)));
}

TEST_P(redlock_faults, a_timed_try_ends_in_time_with_any_hanging_node) {
  client a(w_);
  (void)do_.release(do_.acquire(a.lock));  // from now on it knows the nodes
  a.settle();
  const auto so_far = a.ways[0]->count(verb::release);
  a.ways[0]->hang(verb::release);
  for (const std::size_t i : {1U, 2U}) a.ways[i]->hang(verb::acquire);
  const std::array asked{a.ways[1]->count(verb::acquire), a.ways[2]->count(verb::acquire)};
  auto got = harness::concurrently(
      [&] { return reason_of([&] { EXPECT_FALSE(do_.try_acquire_for(a.lock, 300ms)); }); });
  for (const std::size_t i : {1U, 2U}) a.ways[i]->await(verb::acquire, asked[i - 1] + 1);
  w_.clock->advance(250ms);  // the vote fails, and is released
  a.ways[0]->await(verb::release, so_far + 1);
  w_.clock->advance(50ms);
  EXPECT_EQ(get(got), errc::unavailable);
}

TEST_P(redlock_faults, a_try_that_ends_before_a_node_s_time_to_answer_finds_no_node_away) {
  client a(w_);
  for (const auto& way : a.ways) way->hang(verb::acquire);
  auto got = harness::concurrently(
      [&] { return reason_of([&] { EXPECT_FALSE(do_.try_acquire_for(a.lock, 100ms)); }); });
  harness::eventually("the end of it", [&] {
    harness::pass(*w_.clock, 1ms);
    return got.wait_for(0s) == std::future_status::ready;
  });
  EXPECT_EQ(got.get(), errc{});
}

// Another client has the first node, so the failure of the second decides the vote before the third
// can fail again.
TEST_P(redlock_faults, a_node_that_has_failed_is_away_although_a_vote_is_decided_without_it) {
  client a(w_);
  const auto one_try = [&] { return reason_of([&] { EXPECT_FALSE(do_.try_acquire(a.lock)); }); };
  a.cut(0b110);
  EXPECT_EQ(one_try(), errc::unavailable);  // the first node grants it, so it waits for both others
  a.settle();
  const auto other = holdfast::mutex(w_.open(0, nullptr), "job").acquire();
  a.cut(0b010);
  a.ways[2]->hang(verb::acquire);
  EXPECT_EQ(one_try(), errc::unavailable);
}

/// Four nodes. Another client has two of them, which refuse, and so decide each vote before the two
/// others answer.
class halves_of_redlocks : public redlock_faults {
 protected:
  halves_of_redlocks() {
    for (const std::size_t i : {0U, 1U}) {
      others_.push_back(holdfast::mutex(four_.open(i, nullptr), "job").acquire());
    }
  }
  void late_nodes(void (*change)(engine_test::script&)) {
    for (const std::size_t i : {2U, 3U}) change(*a_.ways[i]);
  }
  /// How the wait ends; `cancelled` after a minute.
  errc end_of(std::chrono::nanoseconds wait, const std::function<void()>& after_a_vote = {}) {
    const boot_time begins = four_.clock->now();
    std::stop_source enough;
    const auto hang = [](engine_test::script& of) { of.hang(verb::acquire); };
    late_nodes(hang);
    auto got = harness::concurrently([&] {
      return reason_of([&] {
        if (wait == holdfast::no_limit) (void)do_.acquire(a_.lock, enough.get_token());
        EXPECT_FALSE(do_.try_acquire_for(a_.lock, wait));
      });
    });
    harness::eventually("the end of it", [&] {
      harness::until_threads_rest();
      late_nodes([](engine_test::script& of) { of.let_go(); });
      harness::until_threads_rest();
      if (got.wait_for(0s) == std::future_status::ready) return true;
      if (after_a_vote) after_a_vote();
      late_nodes(hang);
      four_.clock->advance(100ms);
      if (four_.clock->now() - begins > 1min) enough.request_stop();
      return false;
    });
    late_nodes([](engine_test::script& of) { of.let_go(); });
    return got.get();
  }

  world four_{4};
  client a_{four_};
  std::vector<holdfast::lease> others_;
};

INSTANTIATE_TEST_SUITE_P(forms, halves_of_redlocks,
                         testing::Values(form::by_a_thread, form::without_a_thread),
                         [](const auto& cell) { return name_of(cell.param); });

// Whatever the others do, no client gets a majority while these nodes are away.
TEST_P(halves_of_redlocks, are_away_although_refusals_decide_each_vote) {
  a_.cut(0b1100);
  const boot_time begins = four_.clock->now();
  EXPECT_EQ(end_of(holdfast::no_limit), errc::unavailable);
  EXPECT_GE(four_.clock->now() - begins, 10s) << "store_timeout";
  EXPECT_EQ(end_of(20s), errc::unavailable);
  EXPECT_EQ(end_of(5s), errc{}) << "it is held, and nobody knows yet that they stay away";
}

TEST_P(halves_of_redlocks, that_failed_once_are_not_away) {
  a_.cut(0b1100);
  EXPECT_EQ(end_of(30s, [&] { a_.cut(0); }), errc{});
}

TEST_P(redlock_faults, a_wait_that_cannot_succeed_is_reported_to_the_observer) {
  client a(w_);
  std::vector<holdfast::lease> others;
  for (std::size_t i = 0; i < nodes; ++i) {
    others.push_back(holdfast::semaphore(w_.open(i, nullptr), "job", 2).acquire());
  }
  EXPECT_EQ(reason_of([&] { (void)do_.acquire(a.lock); }), errc::kind_mismatch);
  EXPECT_EQ(w_.seen->count(event_kind::gave_up), 1U);
  redlock twice = make_odd({}, true);
  EXPECT_EQ(reason_of([&] { (void)do_.acquire(twice); }), errc::invalid_argument);
  EXPECT_EQ(w_.seen->count(event_kind::gave_up), 2U);
}

// As if the process had been stopped for an hour in the middle of the vote.
TEST_P(redlock_faults, a_vote_that_was_held_up_here_makes_the_pause_after_it_no_longer) {
  client a(w_, {.node_timeout = 30s});
  const auto other = holdfast::mutex(w_.open(1, nullptr), "job").acquire();
  a.ways[2]->hang(verb::acquire);
  auto got = harness::concurrently([&] { return do_.acquire(a.lock); });
  for (const auto& way : a.ways) way->await(verb::acquire, 1);
  for (const std::size_t i : {0U, 1U}) a.settle(i);  // or they would be away, too
  EXPECT_EQ(w_.holders(0), 1U);
  w_.clock->advance(1h);
  a.ways[2]->let_go();
  const auto then = w_.clock->now();
  harness::eventually("it votes again", [&] {
    harness::pass(*w_.clock, 100ms);  // in small steps: the nodes have their time to answer
    return got.wait_for(0s) == std::future_status::ready;
  });
  EXPECT_LT(w_.clock->now() - then, 10min);
  EXPECT_FALSE(do_.release(got.get()));
}

TEST_P(redlock_faults, a_timed_try_does_not_wait_longer_to_identify_the_nodes) {
  auto lock = make_odd();
  ways_[0]->hangs_when_identified = true;
  // The others may have answered until then, or not.
  auto got = harness::concurrently(
      [&] { return reason_of([&] { (void)do_.try_acquire_for(lock, 60ms); }); });
  harness::eventually("asked", [&] { return ways_[0]->identified > 0; });
  w_.clock->advance(60ms);
  (void)get(got);
  ways_[0]->hangs_when_identified = false;
  ways_[0]->hangs_when_identified.notify_all();
}

TEST_P(redlock_faults, a_wait_that_is_stopped_before_the_nodes_are_identified_takes_nothing) {
  auto lock = make_odd();
  ways_[0]->hangs_when_identified = true;
  std::stop_source stop;
  auto got = harness::concurrently(
      [&] { return reason_of([&] { (void)do_.acquire(lock, stop.get_token()); }); });
  harness::eventually("asked, and waited for", [&] {
    return ways_[0]->identified > 0 && w_.clock->next_wake() <= w_.clock->now() + 200ms;
  });
  stop.request_stop();
  EXPECT_EQ(get(got), errc::cancelled);
  EXPECT_EQ(lock.attempts(), 0U);
  ways_[0]->hangs_when_identified = false;
  ways_[0]->hangs_when_identified.notify_all();
}

TEST_P(redlock_faults, a_wait_that_is_stopped_while_nodes_hang_releases_the_other_votes) {
  client a(w_, {.node_timeout = 30s});
  do_.release(do_.acquire(a.lock));
  a.settle();
  for (const std::size_t i : {0U, 2U}) a.ways[i]->hang(verb::acquire);
  std::stop_source stop;
  auto got = harness::concurrently(
      [&] { return reason_of([&] { (void)do_.acquire(a.lock, stop.get_token()); }); });
  harness::eventually("one grants it, and the others are waited for", [&] {
    return w_.holders(1) == 1 && w_.clock->next_wake() <= w_.clock->now() + 30s;
  });
  stop.request_stop();
  EXPECT_EQ(get(got), errc::cancelled);
  for (auto& way : a.ways) way->let_go();
  a.settle();
  w_.until_free();
}

TEST_P(redlock_faults, a_loss_is_reported_once_by_whichever_thread_detects_it) {
  client a(w_);
  {
    auto held = a.lock.acquire(10s);
    w_.clock->advance(10s);
    w_.seen->await(event_kind::lost);
    EXPECT_EQ(do_.release(std::move(held)), errc::lost);
  }
  a.settle();
  EXPECT_EQ(w_.seen->count(event_kind::lost), 1u);
}

// Long before the end of the renewed leases. The former holder need not know of the loss yet.
TEST_P(redlock_faults, a_lock_renewed_by_a_minority_is_free_when_its_loss_is_reported) {
  client a(w_);
  const auto held = do_.acquire(a.lock);
  a.settle();
  a.cut(0b110);
  harness::eventually("lost", [&] {
    harness::to_next_wake(*w_.clock, 10s);
    return w_.seen->count(event_kind::lost) > 0;
  });
  a.cut(0);
  comes_free_long_before_the_lease_ends();
  EXPECT_EQ(held.state(), holdfast::lease_state::lost);
}

TEST_P(redlock_faults, a_renewal_that_is_carried_out_after_the_loss_keeps_nothing) {
  client a(w_);
  const auto held = do_.acquire(a.lock);
  a.settle();
  hang_renewals_of(a);
  w_.clock->advance(20s);
  w_.seen->await(event_kind::lost);
  for (const auto& way : a.ways) way->let_go();
  a.settle();
  comes_free_long_before_the_lease_ends();
  EXPECT_EQ(held.state(), holdfast::lease_state::lost);
}

TEST_P(redlock_faults, a_forked_child_drops_its_copy_and_the_parent_keeps_the_lock) {
  auto a = std::make_unique<client>(w_);
  auto held = std::make_unique<holdfast::quorum_lease>(do_.acquire(a->lock));
  a->settle();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);  // rather than wait for ever for a thread that is not there
    const bool lost = held->state() == holdfast::lease_state::lost;
    held.reset();
    a.reset();
    ::_exit(lost ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_NO_THROW(held->check());
  EXPECT_FALSE(do_.release(std::move(*held)));
}

}  // namespace
