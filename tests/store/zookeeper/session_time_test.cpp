#include "store/zookeeper/session_time.hpp"

#include <holdfast/testing.hpp>
#include <memory>
#include <thread>

#include "harness/eventually.hpp"
#include "harness/fault_proxy.hpp"
#include "store/zookeeper/client.hpp"
#include "store/zookeeper/fixture.hpp"
#include "store/zookeeper/zookeeper.hpp"

// How long the servers certainly keep a session: they count from the last time that the leader
// heard of it.
namespace zookeeper_test {
namespace {

using namespace std::chrono_literals;
using holdfast::boot_time;
using holdfast::store::zookeeper::session_time;

constexpr auto session = 60s;
constexpr auto told_within = session / 4;
/// The latest point from which a session's time counts, after the leader last heard of it.
constexpr auto at_most = told_within + session / 3;

class zookeeper_session_time : public testing::Test {
 protected:
  /// Returns the point from which the session's time counts.
  boot_time ask() { return time_.sent(clock_.now()); }
  boot_time ask_and_hear() {
    const auto from = ask();
    time_.answered(clock_.now());
    return from;
  }

  holdfast::testing::fake_clock clock_;
  const boot_time begin_ = clock_.now();
  session_time time_{clock_, session};
};

TEST_F(zookeeper_session_time, counts_from_each_request_of_a_busy_session) {
  for (int i = 0; i < 60; ++i) {
    EXPECT_EQ(ask_and_hear(), clock_.now());
    clock_.advance(time_.speaks_at() - clock_.now());
  }
}

TEST_F(zookeeper_session_time, counts_from_the_last_request_before_the_process_was_stopped) {
  (void)ask_and_hear();
  clock_.advance(told_within);
  EXPECT_EQ(ask_and_hear(), clock_.now());
  clock_.advance(session * 2 / 3);
  EXPECT_EQ(ask_and_hear(), begin_ + told_within + at_most);
  clock_.advance(told_within - 1s);
  EXPECT_EQ(ask_and_hear(), begin_ + told_within + at_most) << "the leader may not know more yet";
  clock_.advance(1s);
  EXPECT_EQ(ask_and_hear(), clock_.now());
}

TEST_F(zookeeper_session_time, counts_a_late_answer_from_the_time_of_its_request) {
  const auto sent = clock_.now() + 10s;
  clock_.advance(10s);
  (void)ask();
  clock_.advance(30s);
  time_.answered(sent);
  EXPECT_EQ(ask(), begin_ + at_most);
  clock_.advance(told_within);
  EXPECT_EQ(ask(), sent + at_most);
}

TEST_F(zookeeper_session_time, does_not_count_requests_without_an_answer) {
  for (int i = 0; i < 6; ++i) {
    clock_.advance(10s);
    (void)ask();
  }
  EXPECT_EQ(ask(), begin_ + at_most);
}

TEST_F(zookeeper_session_time, counts_correctly_over_many_answers) {
  for (int i = 0; i < 600; ++i) {
    EXPECT_EQ(ask_and_hear(), clock_.now());
    clock_.advance(100ms);
  }
}

TEST_F(zookeeper_session_time, looks_at_no_clock_after_its_end) {
  clock_.advance(10s);
  time_.end();
  time_.answered(clock_.now());
  clock_.advance(session);
  EXPECT_EQ(ask(), begin_ + at_most);
}

class zookeeper_session_over_a_relay : public testing::Test {
 protected:
  holdfast::store::zookeeper::zookeeper_options options() {
    holdfast::store::zookeeper::zookeeper_options o;
    o.hosts = "127.0.0.1:" + std::to_string(proxy_.port());
    o.base = fresh_base();
    o.session = session;
    o.command_timeout = 36s;
    o.clock = &clock_;
    return o;
  }

  using as_of = holdfast::store::contender_store::as_of;
  harness::fault_proxy proxy_{calm_ensemble().port(0)};
  holdfast::testing::fake_clock clock_;
  const boot_time start_ = clock_.now();
  const std::unique_ptr<holdfast::store::contender_store> store_ =
      open_zookeeper(options()).value();
};

// The session is silent meanwhile, and its client does not notice the pause: the connection is as
// it was.
TEST_F(zookeeper_session_over_a_relay, is_not_counted_from_after_the_process_stood_still) {
  holdfast::store::contender who;
  who.owner = {1, 2};
  const auto in = store_->enter("job", who, {}, {});
  ASSERT_TRUE(in) << in.error().what;
  EXPECT_EQ(store_->safe_until(in->session), start_ + session * 2 / 5);
  clock_.advance(session * 13 / 20);
  EXPECT_TRUE(store_->contenders("job", as_of::latest, nullptr));
  EXPECT_EQ(store_->safe_until(in->session), start_ + at_most + session * 2 / 5);
  EXPECT_LT(store_->safe_until(in->session), start_ + session);
}

TEST_F(zookeeper_session_over_a_relay, is_not_counted_from_after_a_late_answer) {
  holdfast::store::contender who;
  who.owner = {1, 2};
  const auto in = store_->enter("job", who, {}, {});
  ASSERT_TRUE(in) << in.error().what;
  proxy_.with([](harness::relay& r) { r.stall(harness::way::down); });
  const auto before = proxy_.count().up;
  std::thread asks([&] { EXPECT_FALSE(store_->contenders("job", as_of::latest, nullptr)); });
  harness::eventually("it has asked", [&] { return proxy_.count().up > before; });
  clock_.advance(36s);
  asks.join();
  proxy_.heal();
  EXPECT_TRUE(store_->contenders("job", as_of::latest, nullptr));
  EXPECT_EQ(store_->safe_until(in->session), start_ + at_most + session * 2 / 5);
}

TEST_F(zookeeper_session_over_a_relay, is_kept_alive_without_requests) {
  const auto before = proxy_.count().up;
  clock_.advance(session / 6);
  // Before the client itself would: it does so after a third of the session, by the machine's
  // clock.
  const auto soon = session / 4;
  harness::eventually("something is asked", [&] { return proxy_.count().up > before; }, soon);
}

}  // namespace
}  // namespace zookeeper_test
