#include <gtest/gtest.h>

#include <future>

#include "engine/stage.hpp"
#include "harness/concurrently.hpp"
#include "harness/next_wake.hpp"
#include "harness/passing_on.hpp"

// Validity counts from before the request was sent: an answer that was long on its way is as old as
// its request.
namespace {

using namespace engine_test;
using holdfast::errc;
using holdfast::lease;
using fault = holdfast::testing::fault;
using verb = holdfast::store::permits_verb;
using outcome = holdfast::store::permits_outcome;

constexpr auto on_its_way = 5s;

/// A session whose answers to one verb take five seconds, and one beside it that sees the store.
struct delayed_reply : testing::Test {
  std::shared_ptr<holdfast::testing::fake_clock> clock =
      std::make_shared<holdfast::testing::fake_clock>();
  std::shared_ptr<engine_test::script> script = std::make_shared<engine_test::script>();
  const std::string url = "memory:delayed-" + std::to_string(++number);
  holdfast::session slow = open(url), observer = holdfast::open(url, {.clock = clock});
  static inline int number = 0;

  auto late_answers() const {
    holdfast::testing::fault_plan plan;
    plan.choose = [s = script](auto, auto, auto v) { return s->choose(v); };
    plan.delay = on_its_way;
    return holdfast::testing::faulty(std::move(plan), clock);
  }
  holdfast::session open(const std::string& store) const {
    return holdfast::open(store, {.clock = clock, .decorate = late_answers()});
  }

  bool is_held(const std::string& name) const { return !observer.show(name).holders.empty(); }
  void until_held(const std::string& name) const {
    harness::eventually("granted at the store", [&] { return is_held(name); });
  }
  /// The result of `call`, when the answer to it has come.
  template <class Call>
  auto acquired(const std::string& name, Call call) {
    script->set(verb::acquire, fault::delay_reply);
    auto got = harness::concurrently(call);
    until_held(name);
    clock->advance(on_its_way);
    return got.get();
  }
  /// The result of an extension whose answer comes when the lease of "m" has ended.
  errc extended_too_late(lease& held) {
    script->set(verb::renew, fault::delay_reply);
    auto got = async_extend(held, 1h).future();
    harness::eventually("extended at the store",
                        [&] { return observer.show("m").holders.front().expires_in > 1min; });
    clock->advance(on_its_way);
    return got.get().error().code;
  }
  void expect_given_back(const lease& lost) const {
    harness::eventually("given back", [&] { return !is_held("m"); });
    EXPECT_TRUE(lost.lost().stop_requested());
  }
  static void expect_as_old_as_its_question(std::chrono::nanoseconds remaining) {
    EXPECT_LE(remaining, 30s - on_its_way);
    EXPECT_GT(remaining, 30s - on_its_way - 1s);
  }
};

TEST_F(delayed_reply, of_an_acquisition_leaves_the_rest_of_the_lease) {
  holdfast::mutex m{slow, "m"};
  expect_as_old_as_its_question(acquired("m", [&] { return m.acquire(); }).remaining());
}

TEST_F(delayed_reply, of_an_acquisition_without_a_thread_leaves_the_rest_of_the_lease) {
  holdfast::mutex m{slow, "m"};
  const lease held = acquired("m", [&] { return async_acquire(m).future().get().value(); });
  expect_as_old_as_its_question(held.remaining());
}

TEST_F(delayed_reply, of_a_reader_leaves_the_rest_of_the_lease) {
  holdfast::shared_mutex m{slow, "m"};
  expect_as_old_as_its_question(acquired("m", [&] { return m.acquire_shared(); }).remaining());
}

TEST_F(delayed_reply, of_an_acquisition_as_long_as_the_lease_is_no_grant_and_is_retried) {
  holdfast::mutex m{slow, "m", {.lease = on_its_way, .renew = false}};
  script->set(verb::acquire, fault::delay_reply);
  auto got = harness::concurrently([&] { return m.acquire(); });
  until_held("m");
  script->set(verb::acquire, fault::none);
  clock->advance(on_its_way);
  harness::eventually("the end of it", [&] {
    harness::pass(*clock, 10ms);
    return got.wait_for(0s) == std::future_status::ready;
  });
  EXPECT_GT(got.get().remaining(), on_its_way - 1s);
  EXPECT_GE(script->count(verb::acquire), 2u);
}

TEST_F(delayed_reply, of_a_renewal_leaves_the_rest_of_the_lease) {
  holdfast::mutex m{slow, "m"};
  const lease held = m.acquire();
  script->set(verb::renew, fault::delay_reply);
  clock->advance(10s);
  harness::eventually("renewed at the store",
                      [&] { return observer.show("m").holders.front().expires_in > 29s; });
  EXPECT_LE(held.remaining(), 20s) << "nobody knows that yet";
  clock->advance(on_its_way);
  harness::eventually("it is known", [&] { return held.remaining() > 16s; });
  expect_as_old_as_its_question(held.remaining());
}

TEST_F(delayed_reply, of_an_extension_leaves_the_rest_of_the_lease) {
  holdfast::mutex m{slow, "m"};
  lease held = m.acquire();
  script->set(verb::renew, fault::delay_reply);
  auto got = harness::concurrently([&] { held.extend(60s); });
  harness::eventually("extended at the store",
                      [&] { return observer.show("m").holders.front().expires_in > 59s; });
  clock->advance(on_its_way);
  got.get();
  EXPECT_LE(held.remaining(), 60s - on_its_way);
  EXPECT_GT(held.remaining(), 60s - on_its_way - 1s);
}

TEST_F(delayed_reply, of_an_extension_without_a_thread_leaves_the_rest_of_the_lease) {
  holdfast::mutex m{slow, "m"};
  lease held = m.acquire();
  script->set(verb::renew, fault::delay_reply);
  auto got = async_extend(held, 60s).future();
  harness::eventually("extended at the store",
                      [&] { return observer.show("m").holders.front().expires_in > 59s; });
  clock->advance(on_its_way);
  ASSERT_TRUE(got.get());
  EXPECT_LE(held.remaining(), 60s - on_its_way);
}

// ---- when the lease has ended

TEST_F(delayed_reply, of_a_renewal_that_outlasts_its_lease_releases_the_lock) {
  holdfast::mutex m{slow, "m", {.lease = 6s}};
  lease held = m.acquire();
  script->set(verb::renew, fault::delay_reply);
  clock->advance(2s);
  harness::eventually("renewed at the store",
                      [&] { return observer.show("m").holders.front().expires_in > 5900ms; });
  clock->advance(on_its_way);
  expect_given_back(held);
  EXPECT_EQ(held.release(), errc::lost);
}

TEST_F(delayed_reply, of_an_extension_that_outlasts_its_lease_releases_the_lock) {
  holdfast::mutex m{slow, "m", {.lease = on_its_way, .renew = false}};
  lease held = m.acquire();
  EXPECT_EQ(extended_too_late(held), errc::lost);
  expect_given_back(held);
}

/// The answers to its renewals get lost, after they have been on their way.
class losing_renewals final : public harness::passing_on {
 public:
  using passing_on::passing_on;
  holdfast::result<holdfast::store::permits_reply> permits(
      std::string_view name, const holdfast::store::permits_command& c) override {
    auto reply = inner_->permits(name, c);
    if (c.verb != verb::renew) return reply;
    return holdfast::failure{errc::unavailable, "the answer got lost", true};
  }
};

TEST_F(delayed_reply, that_is_lost_after_the_lease_has_ended_releases_the_lock) {
  const auto seen = std::make_shared<recorder>();
  holdfast::session_options o;
  o.clock = clock;
  o.observer = seen;
  o.decorate = [late = late_answers()](auto store) {
    return std::make_unique<losing_renewals>(late(std::move(store)));
  };
  const auto losing = holdfast::open(url, o);
  holdfast::mutex m{losing, "m", {.lease = on_its_way, .renew = false}};
  lease held = m.acquire();
  EXPECT_EQ(extended_too_late(held), errc::unavailable);
  expect_given_back(held);
  EXPECT_EQ(seen->count(holdfast::event_kind::lost), 1U);
}

TEST_F(delayed_reply, that_never_comes_to_an_extension_keeps_nothing_beyond_the_lease) {
  holdfast::mutex m{slow, "m", {.lease = 6s}};
  lease held = m.acquire();
  script->set(verb::renew, fault::drop_reply);
  EXPECT_THROW(held.extend(1h), holdfast::error);
  EXPECT_GT(observer.show("m").holders.front().expires_in, 1min) << "it was carried out";
  script->set(verb::renew, fault::drop_request);
  harness::eventually("lost", [&] {
    harness::pass(*clock, 100ms);
    return held.lost().stop_requested();
  });
  harness::eventually("given back", [&] { return !is_held("m"); });
  EXPECT_EQ(held.release(), errc::lost);
}

/// A renewal that a store of records has decided waits until it is written, and then finds the
/// record as it was.
class renewals_that_are_written_late final : public harness::passing_on {
 public:
  struct gates {
    std::promise<void> decided, goes_on;
    std::promise<bool> written;
  };
  renewals_that_are_written_late(std::unique_ptr<session_store> inner, std::shared_ptr<gates> g)
      : passing_on(std::move(inner)), gates_(std::move(g)) {}
  holdfast::result<holdfast::store::permits_reply> permits(
      std::string_view name, const holdfast::store::permits_command& c) override {
    if (c.verb != verb::renew) return inner_->permits(name, c);
    gates_->decided.set_value();
    gates_->goes_on.get_future().wait();
    auto again = c;
    again.verb = verb::acquire;
    auto reply = inner_->permits(name, again);
    gates_->written.set_value(reply && reply->outcome == outcome::granted);
    return reply;
  }

 private:
  const std::shared_ptr<gates> gates_;
};

TEST_F(delayed_reply, of_a_renewal_that_is_written_after_the_release_keeps_nothing) {
  const auto gates = std::make_shared<renewals_that_are_written_late::gates>();
  const auto late = holdfast::open(url, {.clock = clock, .decorate = [gates](auto store) {
                                           return std::make_unique<renewals_that_are_written_late>(
                                               std::move(store), gates);
                                         }});
  holdfast::mutex m{late, "m", {.lease = 6s}};
  lease held = m.acquire();
  clock->advance(2s);
  gates->decided.get_future().wait();
  clock->advance(on_its_way);
  EXPECT_EQ(held.release(), errc::lost);
  gates->goes_on.set_value();
  EXPECT_TRUE(gates->written.get_future().get());
  harness::eventually("given back", [&] { return !is_held("m"); });
}

// ---- of several

TEST_F(delayed_reply, of_several_at_once_leaves_the_rest_of_their_leases) {
  holdfast::mutex a{slow, "a"}, b{slow, "b"};
  holdfast::multi_lock all{a, b};
  const auto held = acquired("b", [&] { return all.acquire(); });
  expect_as_old_as_its_question(held.remaining());
}

TEST_F(delayed_reply, of_several_at_once_without_a_thread_leaves_the_rest_of_their_leases) {
  holdfast::mutex a{slow, "a"}, b{slow, "b"};
  holdfast::multi_lock all{a, b};
  const auto held = acquired("b", [&] { return async_acquire(all).future().get().value(); });
  expect_as_old_as_its_question(held.remaining());
}

TEST_F(delayed_reply, of_an_admission_leaves_the_rest_of_the_lease) {
  holdfast::semaphore slots{slow, "slots", 3};
  holdfast::rate_limiter limiter{slow, "limit", {{.tokens = 9, .per = 1s}}};
  holdfast::admission door{limiter, slots};
  const auto inside = acquired("slots", [&] { return door.try_admit(); });
  ASSERT_TRUE(inside);
  expect_as_old_as_its_question(inside.permit.remaining());
}

TEST_F(delayed_reply, of_two_late_admissions_refunds_the_tokens_of_both) {
  holdfast::rate_limiter three{slow, "tokens", {{.tokens = 3, .per = 24h}}};
  holdfast::semaphore slots{slow, "slots", 1, {.lease = on_its_way, .renew = false}};
  holdfast::admission door{three, slots};
  script->set(verb::acquire, fault::delay_reply);
  auto got = harness::concurrently([&] { return door.admit(); });
  harness::eventually("two that come too late", [&] {
    harness::to_next_wake(*clock, on_its_way);
    return script->count(verb::acquire) >= 3;
  });
  script->set(verb::acquire, fault::none);
  harness::eventually("the end of it", [&] {
    harness::to_next_wake(*clock, on_its_way);
    return got.wait_for(0s) == std::future_status::ready;
  });
  EXPECT_TRUE(got.get());
  EXPECT_EQ(three.peek().rules.at(0).remaining, 2u);
}

TEST_F(delayed_reply, of_a_majority_leaves_the_rest_of_the_lease) {
  std::vector<holdfast::session> nodes{slow};
  for (int i = 1; i < 3; ++i) nodes.push_back(open(url + "-" + std::to_string(i)));
  holdfast::redlock lock{nodes, "m", {.node_timeout = 20s}};
  script->set(verb::acquire, fault::delay_reply);
  auto got = harness::concurrently([&] { return lock.acquire(); });
  for (const auto& node : nodes) {
    harness::eventually("granted", [&] { return !node.show("m").holders.empty(); });
  }
  script->set(verb::acquire, fault::none);  // they may have to agree on the fence
  clock->advance(on_its_way);
  const auto held = got.get();
  expect_as_old_as_its_question(held.remaining());
}

TEST_F(delayed_reply, of_a_majoritys_renewal_leaves_the_rest_of_the_lease) {
  holdfast::redlock lock{{slow}, "m", {.node_timeout = 20s}};
  const auto held = lock.acquire();
  script->set(verb::acquire, fault::delay_reply);
  clock->advance(10s);
  harness::eventually("renewed at the store",
                      [&] { return observer.show("m").holders.front().expires_in > 29s; });
  clock->advance(4s);  // a round has a sixth of the lease
  EXPECT_LE(held.remaining(), 16s) << "nobody knows that yet";
  clock->advance(1s);
  script->set(verb::acquire, fault::none);
}

}  // namespace
