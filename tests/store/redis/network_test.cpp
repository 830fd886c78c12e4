#include <algorithm>
#include <functional>
#include <optional>
#include <sstream>
#include <thread>

#include "fixture.hpp"
#include "harness/concurrently.hpp"
#include "harness/fault_proxy.hpp"
#include "harness/hung_store.hpp"
#include "harness/passing_on.hpp"
#include "harness/tcp.hpp"
#include "session/session_impl.hpp"

// Faults of the network between us and the server, and who gets a lock meanwhile.
namespace {

using namespace std::chrono_literals;
using harness::eventually;
using harness::relay;
using harness::way;
using holdfast::errc;
using redis_test::contains;
using redis_test::outcome_of;

/// A server behind a bad network, and a session that sees it directly.
class redis_network : public testing::Test {
 protected:
  holdfast::session behind(const std::string& options = {}) {
    holdfast::session_options o;
    o.store_timeout = 60s;
    return holdfast::open("redis://127.0.0.1:" + std::to_string(proxy_.port()) + "/0" + options, o);
  }
  std::vector<holdfast::participant> holders() { return direct_.show("m").holders; }
  void cut_the_answer_after(std::size_t bytes) {
    proxy_.with([&](relay& r) { r.cut_after(way::down, bytes); });
  }

  harness::redis_server server_;
  harness::fault_proxy proxy_{server_.port()};
  holdfast::session direct_ = holdfast::open(server_.url("?command_timeout=1m"));
};

TEST_F(redis_network, calls_end_at_their_limit_while_the_server_hangs) {
  const auto url = [](int port) { return "redis://127.0.0.1:" + std::to_string(port) + "/0"; };
  harness::calls_end_at_their_limit_while_it_hangs(
      harness::hang(proxy_), url(proxy_.port()) + "?connect_timeout=3600s&command_timeout=3600s",
      url(server_.port()));
}

TEST_F(redis_network, calls_in_each_dialect_end_at_their_limit_too) {
  server_.may_stay("*", "what the times of setnx are in is a key for ever");
  for (const std::string dialect : {"redlock", "redisson", "setnx"}) {
    SCOPED_TRACE(dialect);
    const auto url = [&](int port) {
      return "redis://127.0.0.1:" + std::to_string(port) + "/0?dialect=" + dialect;
    };
    harness::calls_end_at_their_limit_while_it_hangs(
        harness::hang(proxy_), url(proxy_.port()) + "&connect_timeout=3600s&command_timeout=3600s",
        url(server_.port()));
  }
}

// The server's connections live and are greeted, and writes wait.
TEST_F(redis_network, calls_end_at_their_limit_while_the_server_is_paused) {
  const auto url = server_.tcp_url("?connect_timeout=3600s&command_timeout=3600s");
  harness::calls_end_at_their_limit_while_it_hangs(
      {[&] { server_.ask({"CLIENT", "PAUSE", "3600000", "WRITE"}); },
       [&] { server_.ask({"CLIENT", "UNPAUSE"}); }},
      url, url);
}

TEST_F(redis_network, tries_time_out_while_the_server_is_paused) {
  harness::tries_time_out_while_it_hangs(
      {[&] { server_.ask({"CLIENT", "PAUSE", "3600000", "WRITE"}); },
       [&] { server_.ask({"CLIENT", "UNPAUSE"}); }},
      server_.tcp_url("?command_timeout=300ms"));
}

// An address that moves: the former server continues, and so does the connection to it for
// notifications.
class redis_moved_address : public redis_network {
 protected:
  void expect_that_the_subscription_follows(const std::string& options) {
    const auto at_home = holdfast::open(now_.url(options));
    auto held = holdfast::mutex(at_home, "m").acquire();
    const auto s = behind(options);
    proxy_.with(
        [&](relay& r) { r.lead_to({"127.0.0.1", static_cast<std::uint16_t>(now_.port())}); });
    server_.ask({"CLIENT", "KILL", "TYPE", "normal"});
    EXPECT_EQ(redis_test::listening_at(server_), 2U) << "the old one lets it listen";
    std::thread waiter([&] { (void)holdfast::mutex(s, "m").acquire(); });
    eventually("its subscription to be at the server of the commands",
               [&] { return redis_test::listening_at(now_) == 2U; });
    EXPECT_FALSE(held.release());
    waiter.join();
  }
  harness::redis_server now_;
};

TEST_F(redis_moved_address, the_subscription_follows_the_commands_to_another_server) {
  expect_that_the_subscription_follows("");
}

TEST_F(redis_moved_address, the_subscription_of_a_dialect_follows_the_commands_to_another_server) {
  expect_that_the_subscription_follows("?dialect=redisson");
}

TEST_F(redis_network, tries_time_out_while_the_server_hangs) {
  const std::string url = "redis://127.0.0.1:" + std::to_string(proxy_.port()) + "/0";
  for (const std::string dialect :
       {"", "&dialect=redlock", "&dialect=redisson", "&dialect=setnx"}) {
    SCOPED_TRACE(dialect);
    harness::tries_time_out_while_it_hangs(harness::hang(proxy_),
                                           url + "?command_timeout=300ms" + dialect);
  }
}

// Of setnx: two owners of the same second write the same value.
TEST_F(redis_network, a_release_that_may_have_been_carried_out_is_not_repeated_without_an_owner) {
  server_.may_stay("m", "the time of setnx is a key for ever");
  auto s = holdfast::open("redis://127.0.0.1:" + std::to_string(proxy_.port()) +
                          "/0?dialect=setnx&command_timeout=5s");
  auto held = holdfast::mutex(s, "m").acquire();
  const auto mine = server_.ask({"GET", "m"});
  proxy_.with([](relay& r) { r.stall(way::down); });
  auto released = harness::concurrently([&] { return held.release(); });
  harness::eventually("it is carried out", [&] { return server_.ask({"EXISTS", "m"}) == "0"; });
  server_.ask({"SET", "m", mine});  // by another owner
  proxy_.with([](relay& r) {
    r.cut();
    r.heal();
  });
  (void)released.get();
  EXPECT_EQ(server_.ask({"GET", "m"}), mine);
}

TEST_F(redis_network, an_answer_cut_at_any_byte_leaves_one_grant_and_no_other) {
  auto s = behind();
  holdfast::mutex m{s, "m"}, rival{direct_, "m"};
  const auto before = proxy_.count().down;
  auto held = m.acquire();
  const auto granted = proxy_.count().down;
  EXPECT_FALSE(held.release());
  const auto released = proxy_.count().down;
  ASSERT_GT(granted, before);
  ASSERT_GT(released, granted);
  for (std::size_t byte = 0; byte < granted - before; ++byte) {
    cut_the_answer_after(byte);
    held = m.acquire();
    const auto seen = holders();
    ASSERT_EQ(seen.size(), 1U) << byte;
    EXPECT_EQ(seen[0].fence, held.fence()) << byte;
    if (byte < released - granted) cut_the_answer_after(byte);
    EXPECT_FALSE(held.release()) << byte;
    EXPECT_TRUE(rival.try_acquire()) << "nobody is left behind, byte " << byte;
  }
  EXPECT_EQ(proxy_.count().cut, granted - before + std::min(granted - before, released - granted));
}

TEST_F(redis_network, a_retry_after_a_lost_answer_to_acquire_gets_the_same_grant) {
  auto s = behind("?command_timeout=100ms");
  holdfast::mutex m{s, "m"};
  proxy_.with([](relay& r) { r.swallow(way::down); });
  std::optional<holdfast::lease> got;
  std::thread asking([&] { got = m.acquire(); });
  eventually("a grant that nobody heard of", [&] { return holders().size() == 1; });
  const auto fence = holders()[0].fence;
  proxy_.heal();
  asking.join();
  EXPECT_EQ(got->fence(), fence);
  EXPECT_EQ(holders().size(), 1U);
}

TEST_F(redis_network, a_lost_answer_to_a_release_for_the_next_in_the_local_queue_is_no_loss) {
  auto s = behind();
  holdfast::mutex m{s, "m", {.local_time = 0us}};
  auto held = m.acquire();
  std::thread next([&] { EXPECT_GT(m.acquire().fence(), 0U); });
  const auto local_queue = s.impl()->local_queue_of("m");
  eventually("one at the gate", [&] { return local_queue->waiting() == 1; });
  cut_the_answer_after(0);
  EXPECT_FALSE(held.release());
  next.join();
}

/// Calls `then` before each holder is taken away.
class at_an_eviction final : public harness::passing_on {
 public:
  at_an_eviction(std::unique_ptr<session_store> inner, std::function<void()> then)
      : passing_on(std::move(inner)), then_(std::move(then)) {}
  holdfast::result<holdfast::store::permits_reply> permits(
      std::string_view name, const holdfast::store::permits_command& c) override {
    if (c.verb == holdfast::store::permits_verb::evict) then_();
    return passing_on::permits(name, c);
  }

 private:
  const std::function<void()> then_;
};

// A holder that is gone may have released by itself: no store can tell that its lock was taken
// away.
TEST_F(redis_network, a_holder_that_may_have_been_evicted_is_neither_counted_nor_left_out) {
  way lost = way::down;
  holdfast::session_options o;
  o.decorate = [&](auto inner) {
    return std::make_unique<at_an_eviction>(
        std::move(inner), [&] { proxy_.with([&](relay& r) { r.cut_after(lost, 1); }); });
  };
  const auto s =
      holdfast::open("redis://127.0.0.1:" + std::to_string(proxy_.port()) + "/0", std::move(o));
  auto held = holdfast::mutex(direct_, "m").acquire();
  const auto unheard = outcome_of([&] { (void)s.force_release("m"); });
  EXPECT_EQ(unheard.reason, errc::unavailable) << unheard.text;
  EXPECT_TRUE(unheard.unknown) << unheard.text;
  EXPECT_TRUE(holders().empty());
  EXPECT_EQ(s.force_release("m"), 0U) << "the next call knows that nobody is there";
  EXPECT_EQ(held.release(), make_error_code(errc::lost));
  const auto another = holdfast::mutex(direct_, "m").acquire();
  lost = way::up;
  EXPECT_EQ(s.force_release("m"), 1U) << "who is still there is taken away by the second attempt";
}

TEST_F(redis_network, a_try_whose_answer_is_lost_is_unknown_and_leaves_no_hold) {
  auto s = behind("?command_timeout=100ms");
  holdfast::mutex m{s, "m"}, rival{direct_, "m"};
  proxy_.with([](relay& r) { r.swallow(way::down); });
  try {
    (void)m.try_lock();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const holdfast::error& e) {
    EXPECT_EQ(e.reason(), errc::unavailable) << e.what();
    EXPECT_TRUE(e.outcome_unknown()) << e.what();
  }
  proxy_.heal();
  eventually("the ghost to go", [&] { return holders().empty(); });
  EXPECT_TRUE(rival.try_acquire());
}

TEST_F(redis_network, a_connection_that_took_longer_than_a_command_may_serves_the_next) {
  auto s = behind("?command_timeout=250ms&connect_timeout=1m");
  holdfast::mutex m{s, "m"};
  m.lock(), m.unlock();
  proxy_.with([](relay& r) { r.set_latency(80ms), r.cut(); });
  eventually("a try gets through", [&] {
    try {
      return m.try_lock();
    } catch (const holdfast::error&) {
      return false;
    }
  });
  proxy_.heal();
  m.unlock();
}

TEST_F(redis_network, a_half_open_connection_costs_one_command_timeout_and_no_lock) {
  auto s = behind("?command_timeout=500ms");
  holdfast::mutex m{s, "m"};
  auto held = m.acquire();
  const auto fence = held.fence();
  proxy_.with([](relay& r) { r.half_open(); });
  const auto o = outcome_of([&] { (void)s.show("m"); });
  EXPECT_EQ(o.reason, errc::unavailable);
  EXPECT_TRUE(contains(o.text, "did not answer within 500 ms")) << o.text;
  held.extend();
  EXPECT_EQ(held.fence(), fence);
  EXPECT_FALSE(held.release());
}

TEST_F(redis_network, a_waiter_behind_a_half_open_connection_is_still_served) {
  auto s = behind("?command_timeout=500ms");
  holdfast::mutex first{direct_, "m"}, second{s, "m"};
  auto held = first.acquire();
  std::thread waiter([&] { second.lock(), second.unlock(); });
  eventually("a waiter", [&] { return direct_.show("m").waiters.size() == 1; });
  proxy_.with([](relay& r) { r.half_open(); });
  EXPECT_FALSE(held.release());
  waiter.join();
}

TEST_F(redis_network, a_waiter_whose_output_buffer_was_full_is_still_served) {
  auto s = behind();
  holdfast::mutex first{direct_, "m"}, second{s, "m"};
  auto held = first.acquire();
  std::thread waiter([&] { second.lock(), second.unlock(); });
  eventually("a waiter", [&] { return direct_.show("m").waiters.size() == 1; });
  server_.ask({"CONFIG", "SET", "client-output-buffer-limit", "pubsub 1024 0 0"});
  const auto before = proxy_.count();
  // More bytes than the server buffers for a moment without counting them.
  std::istringstream channels(server_.ask({"PUBSUB", "CHANNELS", "holdfast:inbox:*"}));
  for (std::string c; channels >> c;) server_.ask({"PUBLISH", c, std::string(1'000'000, 'x')});
  eventually("another connection for notices",
             [&] { return proxy_.count().accepted > before.accepted; });
  EXPECT_FALSE(held.release());
  waiter.join();
}

/// A session, and a permanent connection by which the test changes the server's settings.
class redis_doors : public testing::Test {
 protected:
  void say(const std::string& line, const std::string& answer) {
    control_.say(line + "\r\n");
    EXPECT_EQ(control_.hear(answer.size()), answer);
  }
  void hang_up_on_the_session() { say("CLIENT KILL TYPE normal SKIPME yes", ":1\r\n"); }

  harness::redis_server server_;
  harness::tcp_client control_{server_.port()};
  holdfast::session s_ = [&] {
    holdfast::session_options o;
    o.store_timeout = 300ms;
    return holdfast::open(server_.url(), o);
  }();
  holdfast::mutex m_{s_, "m"};
};

TEST_F(redis_doors, a_server_that_is_full_at_a_reconnection_is_unavailable_meanwhile) {
  say("CONFIG SET maxclients 2", "+OK\r\n");  // the other connection listens for notifications
  hang_up_on_the_session();
  const auto o = outcome_of([&] { m_.lock(); });
  EXPECT_EQ(o.reason, errc::unavailable) << o.text;
  EXPECT_TRUE(contains(o.text, "maxclients")) << o.text;
  say("CONFIG SET maxclients 100", "+OK\r\n");
  EXPECT_TRUE(m_.try_lock_for(60s));
}

TEST_F(redis_doors, a_password_set_meanwhile_is_not_permitted_at_the_next_connection) {
  say("CONFIG SET requirepass s3cret", "+OK\r\n");
  server_.wants("s3cret");
  EXPECT_TRUE(m_.try_lock()) << "who is in stays in";
  hang_up_on_the_session();
  const auto o = outcome_of([&] { m_.unlock(), (void)m_.try_lock(); });
  EXPECT_EQ(o.reason, errc::not_permitted) << o.text;
  EXPECT_TRUE(contains(o.text, "NOAUTH")) << o.text;
}

}  // namespace
