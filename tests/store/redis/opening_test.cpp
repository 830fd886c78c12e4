#include <cstdlib>
#include <fstream>
#include <thread>

#include "fixture.hpp"
#include "harness/opened_late.hpp"
#include "harness/tcp.hpp"

// open() at servers and URLs that cannot work.
namespace {

using holdfast::errc;
using redis_test::contains;
using redis_test::outcome_of;

redis_test::outcome opening(const std::string& url) { return harness::outcome_of_opening(url); }

TEST(redis_opening, bad_urls_are_refused_with_the_right_form) {
  const std::vector<std::pair<const char*, const char*>> bad{
      {"redis:localhost", "redis://host"},
      {"redis://", "no host"},
      {"redis://h:0", "port"},
      {"redis://h:99999", "port"},
      {"redis://h:x", "port"},
      {"redis://h/abc", "database"},
      {"redis://h/-1", "database"},
      {"redis://::1", "brackets"},
      {"redis://[::1", "]"},
      {"redis+unix://relative", "absolute"},
      {"redis+unix:relative", "redis+unix:///run/redis.sock"},
      {"redis://h?prefx=a", "prefix"},
      {"redis://h?prefix={}", "prefix"},
      {"redis://h?command_timeout=-1", "command_timeout"},
      {"redis://h?connect_timeout=0", "connect_timeout"},
      {"redis://h?password_env=HOLDFAST_NOT_SET_ANYWHERE", "HOLDFAST_NOT_SET_ANYWHERE"},
      {"redis://h?password_file=/does/not/exist", "/does/not/exist"}};
  for (const auto& [url, word] : bad) {
    const auto o = opening(url);
    EXPECT_EQ(o.reason, errc::invalid_argument) << url << ": " << o.text;
    EXPECT_TRUE(contains(o.text, word)) << url << ": " << o.text;
  }
}

TEST(redis_opening, an_absent_server_is_unavailable_and_the_error_names_its_address) {
  const auto port = std::to_string(harness::free_port());
  const auto o = opening("redis://127.0.0.1:" + port);
  EXPECT_EQ(o.reason, errc::unavailable);
  EXPECT_TRUE(contains(o.text, port)) << o.text;
  EXPECT_EQ(opening("redis+unix:///does/not/exist.sock").reason, errc::unavailable);
}

std::string at(const harness::fake_server& server) {
  return "redis://127.0.0.1:" + std::to_string(server.port());
}

TEST(redis_opening, waits_for_a_server_that_starts_later) {
  harness::redis_server server;
  server.kill();
  EXPECT_NO_THROW(harness::opened_before([&] { server.start(); }, server.url()));
  server.kill();
  EXPECT_NO_THROW(harness::opened_before([&] { server.start(); }, server.tcp_url()));
}

TEST(redis_opening, a_web_server_is_recognised_by_its_answer) {
  const harness::fake_server web([](std::string&) { return "HTTP/1.1 400 Bad Request\r\n\r\n"; });
  const auto o = opening(at(web));
  EXPECT_EQ(o.reason, errc::unavailable);
  EXPECT_TRUE(contains(o.text, "HTTP/1.1 400")) << o.text;
}

TEST(redis_opening, a_server_that_never_answers_is_given_up_in_time) {
  const harness::fake_server silent([](std::string&) { return ""; });
  const auto o = opening(at(silent) + "?connect_timeout=100ms");
  EXPECT_EQ(o.reason, errc::unavailable);
  EXPECT_TRUE(contains(o.text, "no answer in time")) << o.text;
}

TEST(redis_opening, a_server_that_hangs_up_is_reported_with_the_advice_to_try_tls) {
  const harness::fake_server closes([](std::string&) { return std::nullopt; });
  const auto o = opening(at(closes));
  EXPECT_EQ(o.reason, errc::unavailable);
  EXPECT_TRUE(contains(o.text, "rediss://")) << o.text;
}

/// Waiting does not help after a refusal.
class nothing_is_waited_for final : public holdfast::observer {
 public:
  void on_event(const holdfast::event& e) override {
    EXPECT_EQ(e.detail.find("waiting for the store"), e.detail.npos) << e.detail;
  }
};

TEST(redis_opening, a_password_that_is_missing_or_wrong_is_not_permitted_and_never_shown) {
  const harness::redis_server server({"--requirepass", "s3cret"});
  const auto at = "127.0.0.1:" + std::to_string(server.port());
  EXPECT_EQ(opening("redis://" + at).reason, errc::not_permitted);
  const auto wrong = opening("redis://:wr0ng@" + at);
  EXPECT_EQ(wrong.reason, errc::not_permitted);
  EXPECT_FALSE(contains(wrong.text, "wr0ng")) << wrong.text;
  holdfast::session_options patient;
  patient.store_timeout = std::chrono::seconds(2);
  patient.observer = std::make_shared<nothing_is_waited_for>();
  EXPECT_THROW((void)holdfast::open("redis://:wr0ng@" + at, patient), holdfast::error);
  EXPECT_FALSE(opening("redis://:s3cret@" + at).failed);
  EXPECT_FALSE(contains(holdfast::open("redis://:s3cret@" + at).url(), "s3cret"));
}

TEST(redis_opening, a_log_of_events_shows_no_password) {
  harness::redis_server server({"--requirepass", "s3cret"});
  std::mutex mutex;
  std::string lines;
  holdfast::event_log_options log{.routine = true};
  log.write = [&](auto, std::string_view line) {
    const std::lock_guard guard{mutex};
    lines += std::string(line) + '\n';
  };
  const auto has = [&](const std::string& what) {
    const std::lock_guard guard{mutex};
    return contains(lines, what);
  };
  holdfast::session_options o;
  o.lease = std::chrono::milliseconds(600);
  o.observer = std::make_shared<holdfast::event_log>(std::move(log));
  const auto s =
      holdfast::open("redis://:s3cret@127.0.0.1:" + std::to_string(server.port()), std::move(o));
  const auto held = holdfast::mutex(s, "m").acquire();
  harness::eventually("the store to be written", [&] { return has("store=redis://127.0.0.1:"); });
  server.kill();
  harness::eventually("the loss to be written", [&] { return has("event=lost"); });
  EXPECT_FALSE(has("s3cret")) << lines;
}

TEST(redis_opening, a_password_comes_from_the_environment_or_a_file) {
  const harness::redis_server server({"--requirepass", "s3cret"});
  ::setenv("HOLDFAST_TEST_PASSWORD", "s3cret", 1);
  EXPECT_FALSE(opening(server.url("?password_env=HOLDFAST_TEST_PASSWORD")).failed);
  std::ofstream(server.file("password")) << "s3cret\n";
  EXPECT_FALSE(opening(server.url("?password_file=" + server.file("password"))).failed);
}

// The rights that docs/stores/redis.md lists, and no others.
TEST(redis_opening, a_user_with_the_documented_rights_can_do_everything) {
  const harness::redis_server server;
  redis_test::give_documented_rights(server, {"everywhere"});
  auto s = holdfast::open("redis://app:pw@127.0.0.1:" + std::to_string(server.port()));
  holdfast::mutex m{s, "m"}, other{holdfast::open("redis+unix://app:pw@" + server.socket()), "m"};
  m.lock();
  std::thread waiter([&] { other.lock(), other.unlock(); });
  harness::eventually("a waiter", [&] { return s.show("m").waiters.size() == 1; });
  EXPECT_EQ(s.names(), std::vector<std::string>{"m"});
  m.unlock();
  waiter.join();
  holdfast::shared_mutex rw{s, "rw"};
  rw.lock_shared(), rw.unlock_shared();
  holdfast::latch l{s, "l", 1};
  l.count_down(), l.wait(), l.remove();
}

TEST(redis_opening, a_user_without_rights_is_referred_to_the_page_that_lists_them) {
  const harness::redis_server server;
  server.ask({"ACL", "SETUSER", "weak", "on", ">pw", "~other:*", "+@all", "&*"});
  auto s = holdfast::open("redis://weak:pw@127.0.0.1:" + std::to_string(server.port()));
  const auto o = outcome_of([&] { (void)holdfast::mutex(s, "m").try_lock(); });
  EXPECT_EQ(o.reason, errc::not_permitted) << o.text;
  EXPECT_TRUE(contains(o.text, "docs/stores/redis.md")) << o.text;
  server.ask({"ACL", "SETUSER", "mute", "on", ">pw", "~*", "+@all", "resetchannels"});
  EXPECT_EQ(opening("redis://mute:pw@127.0.0.1:" + std::to_string(server.port())).reason,
            errc::not_permitted);
}

TEST(redis_opening, an_eviction_policy_that_may_drop_locks_is_warned_of) {
  const harness::redis_server server({"--maxmemory-policy", "allkeys-lru"});
  const auto told = std::make_shared<redis_test::listener>();
  holdfast::session_options o;
  o.observer = told;
  auto s = holdfast::open(server.url(), o);
  EXPECT_TRUE(told->saw(holdfast::event_kind::warning));
  EXPECT_TRUE(contains(told->details(), "allkeys-lru")) << told->details();
}

TEST(redis_opening, an_observer_that_throws_at_a_warning_disturbs_nothing) {
  class throwing final : public holdfast::observer {
    void on_event(const holdfast::event&) override { throw std::out_of_range("by the observer"); }
  };
  const harness::redis_server server({"--maxmemory-policy", "allkeys-lru"});
  holdfast::session_options o;
  o.observer = std::make_shared<throwing>();
  auto s = holdfast::open(server.url(), o);
  EXPECT_TRUE(holdfast::mutex(s, "m").try_acquire());
}

TEST(redis_opening, a_replica_is_refused_and_its_primary_named) {
  const harness::redis_server server;
  server.ask({"REPLICAOF", "127.0.0.1", "1"});
  const auto o = opening(server.url());
  EXPECT_EQ(o.reason, errc::read_only) << o.text;
  EXPECT_TRUE(contains(o.text, "127.0.0.1:1")) << o.text;
}

TEST(redis_opening, a_node_of_a_cluster_is_refused) {
  const harness::redis_server server({"--cluster-enabled", "yes"});
  const auto o = opening(server.url());
  EXPECT_EQ(o.reason, errc::unsupported) << o.text;
}

TEST(redis_opening, a_command_that_the_server_has_renamed_is_unsupported) {
  for (const auto* command : {"EVALSHA", "HSET"}) {
    const harness::redis_server server({"--rename-command", command, ""});
    auto s = holdfast::open(server.url());
    holdfast::semaphore two{s, "two", 2};  // its holders are in a hash
    const auto refused = outcome_of([&] { (void)two.try_acquire(); });
    EXPECT_EQ(refused.reason, errc::unsupported) << refused.text;
    EXPECT_TRUE(contains(refused.text, "rename-command")) << refused.text;
  }
}

TEST(redis_opening, a_database_that_does_not_exist_is_named) {
  const harness::redis_server server({"--databases", "2"});
  EXPECT_FALSE(opening(server.tcp_url("/1")).failed);
  const auto o = opening(server.tcp_url("/7"));
  EXPECT_EQ(o.reason, errc::invalid_argument) << o.text;
  EXPECT_TRUE(contains(o.text, "7")) << o.text;
}

TEST(redis_opening, the_url_that_people_see_names_the_database_wherever_it_was_chosen) {
  const harness::redis_server server;
  const auto shown = [](const std::string& url) { return holdfast::open(url).url(); };
  EXPECT_EQ(shown(server.tcp_url("/3")), server.tcp_url("/3"));
  EXPECT_EQ(shown(server.tcp_url("?database=3")), server.tcp_url("/3"));
  EXPECT_EQ(shown(server.tcp_url("/3?database=3")), server.tcp_url("/3"));
  EXPECT_EQ(shown(server.url()), server.url());
  EXPECT_EQ(shown(server.url("?database=3")), server.url("?database=3"));
  EXPECT_EQ(shown(server.url("?database=3&dialect=setnx")),
            server.url("?database=3&dialect=setnx"));
}

TEST(redis_opening, the_url_that_people_see_names_the_prefix_of_the_keys) {
  const harness::redis_server server;
  const auto shown = [](const std::string& url) { return holdfast::open(url).url(); };
  EXPECT_EQ(shown(server.tcp_url("/3?prefix=a:&command_timeout=1s")),
            server.tcp_url("/3?prefix=a:"));
  EXPECT_EQ(shown(server.url("?prefix=a:")), server.url("?prefix=a:"));
  EXPECT_EQ(shown(server.tcp_url("/0?prefix=holdfast")), server.tcp_url("/0")) << "the usual one";
  EXPECT_EQ(shown(server.tcp_url("/0?dialect=redlock&prefix=a%26b")),
            server.tcp_url("/0?prefix=a%26b&dialect=redlock"));
}

// Two names of two stores are two locks, and one name by two URLs is one.
TEST(redis_opening, stores_that_differ_in_a_part_of_the_url_are_distinct) {
  const harness::redis_server server;
  const auto outcome = [](const std::string& one, const std::string& other) {
    const auto a = holdfast::open(one), b = holdfast::open(other);
    holdfast::mutex first(a, "m"), second(b, "m");
    return harness::outcome_of([&] {
      holdfast::multi_lock all{first, second};
      EXPECT_TRUE(all.try_acquire());
    });
  };
  for (const auto& [one, other] : std::vector<std::pair<std::string, std::string>>{
           {server.tcp_url("?prefix=a:"), server.tcp_url("?prefix=b:")},
           {server.tcp_url("?prefix=a:"), server.url("?prefix=b:")},
           {server.tcp_url("/0"), server.url("?database=1")},
           {server.tcp_url("?prefix=a:"), server.tcp_url("?dialect=redlock&prefix=a:")},
           {server.tcp_url("?dialect=redlock&prefix=a:"), server.url("?dialect=redlock")}}) {
    const auto both = outcome(one, other);
    EXPECT_FALSE(both.failed) << both.text;
  }
  for (const std::string same : {"", "?prefix=a:", "?database=1", "?dialect=redlock&prefix=a:"}) {
    const auto twice = outcome(server.tcp_url(same), server.url(same));
    EXPECT_EQ(twice.reason, errc::invalid_argument) << same << ' ' << twice.text;
    EXPECT_TRUE(contains(twice.text, "a member twice")) << twice.text;
  }
}

TEST(redis_opening, too_many_clients_is_unavailable_and_the_error_names_the_limit) {
  const harness::redis_server server({"--maxclients", "3"});
  auto first = holdfast::open(server.url());
  for (int i = 0; i < 1000; ++i) {  // it may close the connection before anything is sent
    const auto o = opening(server.url());
    ASSERT_EQ(o.reason, errc::unavailable) << o.text;
    ASSERT_TRUE(contains(o.text, "maxclients")) << o.text;
  }
}

}  // namespace
