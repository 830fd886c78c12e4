#include "store/zookeeper/quiet_times.hpp"

#include <holdfast/testing.hpp>
#include <memory>
#include <thread>

#include "harness/eventually.hpp"
#include "harness/fault_proxy.hpp"
#include "store/zookeeper/client.hpp"
#include "store/zookeeper/fixture.hpp"
#include "store/zookeeper/zookeeper.hpp"

// For how long a session is counted after times in which the client said nothing.
namespace zookeeper_test {
namespace {

using namespace std::chrono_literals;
using holdfast::boot_time;
using holdfast::store::zookeeper::quiet_times;

constexpr auto session = 60s;
constexpr boot_time begin{1h};
/// What the leader may have been told last, and what a session is counted from at most then.
constexpr auto at_most = session / 4 + session / 3;

TEST(zookeeper_quiet_times, of_a_client_that_had_its_answers_are_short) {
  quiet_times times;
  EXPECT_EQ(times.sent(begin, 1, session), begin);
  times.answered(begin + session / 3, session);
  EXPECT_EQ(times.sent(begin + 1h, 2, session), begin + 1h);
}

TEST(zookeeper_quiet_times, last_until_a_late_answer_and_count_for_a_quarter_of_the_session) {
  quiet_times times;
  (void)times.sent(begin, 2, session);
  times.answered(begin + 1s, session);
  times.answered(begin + 36s, session);
  EXPECT_EQ(times.sent(begin + 36s, 1, session), begin + at_most);
  times.answered(begin + 37s, session);
  EXPECT_EQ(times.sent(begin + 50s, 1, session), begin + at_most);
  times.answered(begin + 51s, session);
  EXPECT_EQ(times.sent(begin + 51s, 1, session), begin + 51s);
}

TEST(zookeeper_quiet_times, last_until_the_next_request) {
  quiet_times times;
  (void)times.sent(begin, 1, session);
  EXPECT_EQ(times.sent(begin + 10s, 1, session), begin + 10s);
  EXPECT_EQ(times.sent(begin + 50s, 1, session), begin + 10s + at_most);
}

TEST(zookeeper_quiet_times, end_when_it_connects) {
  quiet_times times;
  (void)times.sent(begin, 1, session);
  (void)times.sent(begin + 39s, 1, session);
  times.connected(begin + 40s);
  times.answered(begin + 41s, session);
  times.answered(begin + 41s, session);
  EXPECT_EQ(times.sent(begin + 41s, 1, session), begin + 41s);
}

TEST(zookeeper_quiet_times, do_not_begin_with_what_was_never_sent) {
  using holdfast::store::zookeeper::requests;
  const auto times = std::make_shared<quiet_times>();
  const holdfast::testing::fake_clock clock;
  const boot_time asked = clock.now();
  {
    const auto without_memory = std::make_shared<requests>(2);
    without_memory->note_answers(times, clock, session);
    EXPECT_EQ(times->sent(asked, 2, session), asked);
  }
  EXPECT_EQ(times->sent(asked + 1h, 1, session), asked + 1h);
}

TEST(zookeeper_quiet_times, count_for_what_a_session_believes) {
  using holdfast::faultproxy::relay;
  using holdfast::faultproxy::way;
  using as_of = holdfast::store::contender_store::as_of;
  harness::fault_proxy proxy(calm_ensemble().port(0));
  holdfast::testing::fake_clock clock;
  holdfast::store::zookeeper::zookeeper_options options;
  options.hosts = "127.0.0.1:" + std::to_string(proxy.port());
  options.base = fresh_base();
  options.session = session;
  options.command_timeout = 36s;
  options.clock = &clock;
  const auto opened = open_zookeeper(options);
  ASSERT_TRUE(opened) << opened.error().what;
  auto& store = **opened;
  holdfast::store::contender who;
  who.owner = {1, 2};
  const auto in = store.enter("job", who, {}, {});
  ASSERT_TRUE(in) << in.error().what;
  const boot_time start = clock.now();
  EXPECT_EQ(store.safe_until(in->session), start + session * 2 / 5);
  proxy.with([](relay& r) { r.stall(way::down); });
  const auto before = proxy.count().up;
  std::thread asks([&] { EXPECT_FALSE(store.contenders("job", as_of::latest, nullptr)); });
  harness::eventually("it has asked", [&] { return proxy.count().up > before; });
  clock.advance(options.command_timeout);
  asks.join();
  proxy.heal();
  EXPECT_TRUE(store.contenders("job", as_of::latest, nullptr));
  EXPECT_EQ(store.safe_until(in->session), start + at_most + session * 2 / 5);
}

}  // namespace
}  // namespace zookeeper_test
