#include <atomic>
#include <cstdlib>
#include <fstream>

#include "fixture.hpp"
#include "harness/fake_redis.hpp"

// Addresses and servers that cannot work: the problem and the remedy, before anything happens.
namespace {

using harness::fake_redis;
using holdfast::errc;
using redis_test::contains;
using redis_test::outcome_of;

redis_test::outcome opening(const std::string& url) { return harness::outcome_of_opening(url); }

void expect_refused(const std::string& url, const std::string& word) {
  const auto o = opening(url);
  EXPECT_EQ(o.reason, errc::invalid_argument) << url << ": " << o.text;
  EXPECT_TRUE(contains(o.text, word)) << url << ": " << o.text;
}

TEST(redis_bad_input, unknown_schemes_are_refused_with_the_nearest_one) {
  expect_refused("reddis://h", "'redis:'");
  expect_refused("redis+tls://h", "redis");
  expect_refused("redis+ssl://h", "redis");
  expect_refused("redis+sentinels://h/m", "'redis+sentinel:'");
  expect_refused("redis+clutser://h", "'redis+cluster:'");
}

TEST(redis_bad_input, malformed_addresses_are_refused_with_the_missing_part) {
  expect_refused("redis+sentinel://h", "name of the primary");
  expect_refused("redis+sentinel://h/", "name of the primary");
  expect_refused("redis+sentinel://h:0/m", "port");
  expect_refused("redis+sentinel://h,/m", "no host");
  expect_refused("redis+sentinel://h/m/x", "database");
  expect_refused("redis+cluster://", "no host");
  expect_refused("redis+cluster://a:1,b:70000", "port");
  expect_refused("redis+cluster://h/3", "one database");
  expect_refused("redis://h:6379x", "port");
  expect_refused("redis://h:-1", "port");
  expect_refused("redis://h/1/2", "database");
  expect_refused("redis://h/1000001", "database");
  expect_refused("redis://h?database=x", "database");
}

TEST(redis_bad_input, unknown_or_unfitting_options_are_named) {
  expect_refused("redis://h?comand_timeout=1s", "'command_timeout'");
  for (const char* const bad : {"some", "0", "-1", "1001", "1x", ""}) {
    expect_refused("redis://h?ack=" + std::string(bad), "any, majority, all, or a number");
  }
  for (const char* const bad : {"0", "all", "1001"}) {
    expect_refused("redis://h?ack=all&replicas=" + std::string(bad), "how many replicas");
  }
  expect_refused("redis://h?ack=all", "replicas=");
  expect_refused("redis://h?ack=majority", "replicas=");
  expect_refused("redis://h?replicas=2", "ack=");
  expect_refused("redis://h?ack=3&replicas=2", "more than replicas=2");
  expect_refused("redis://h?ack=1&ack_timeout=5s", "shorter than command_timeout");
  expect_refused("redis://h?sentinel_user=x", "sentinel_password");
  expect_refused("redis+sentinel://h/m?sentinel_user=x", "sentinel_password_env");
  for (const std::string option : {"command_timeout", "connect_timeout", "ack_timeout"}) {
    for (const std::string bad : {"10000000000h", "25h", "1e99", "0"}) {
      expect_refused("redis://h?ack=1&" + option + "=" + bad, option + " goes from 1ms to 24h");
    }
  }
  expect_refused("redis://h?ack=1&ack_timeout=24h&command_timeout=24h", "shorter than");
}

TEST(redis_bad_input, an_option_without_the_option_that_it_belongs_to_is_refused) {
  expect_refused("redis://h?ack_timeout=1s", "is for ack=");
  for (const char* const more : {"", "&dialect=redlock", "&dialect=redisson"}) {
    expect_refused("redis://h?setnx_unit=s" + std::string(more), "is for ?dialect=setnx");
  }
  for (const char* const more : {"", "&dialect=redlock", "&dialect=setnx"}) {
    expect_refused("redis://h?redisson_lock=plain" + std::string(more), "is for ?dialect=redisson");
  }
}

TEST(redis_bad_input, options_for_sentinels_are_refused_elsewhere_before_other_errors) {
  expect_refused("redis://h?sentinel_user=x", "for redis+sentinel:");
  expect_refused("redis+cluster://h?sentinel_user=x", "for redis+sentinel:");
}

TEST(redis_bad_input, a_long_value_is_not_repeated_as_a_whole) {
  const auto o = opening("redis://h?dialect=" + std::string(5'000, 'x'));
  EXPECT_EQ(o.reason, errc::invalid_argument) << o.text;
  EXPECT_LT(o.text.size(), 1'000U) << o.text;
}

TEST(redis_bad_input, two_databases_are_refused_and_named) {
  for (const char* const url : {"redis://h/0?database=3", "redis+sentinel://h/m/0?database=3",
                                "rediss://h/0?database=3", "redis+cluster://h/0?database=3"}) {
    expect_refused(url, "two databases: 0 in the path, and 3");
  }
}

TEST(redis_bad_input, options_of_tls_are_refused_without_tls) {
  for (const char* const option : {"ca", "cert", "key", "server_name"}) {
    expect_refused("redis://h?" + std::string(option) + "=/x", "begins with rediss");
  }
}

TEST(redis_bad_input, a_user_without_a_password_is_refused_and_not_repeated) {
  const harness::redis_server server;
  const auto at = "127.0.0.1:" + std::to_string(server.port());
  const auto o = opening("redis://s3cret@" + at);
  EXPECT_EQ(o.reason, errc::invalid_argument) << o.text;
  EXPECT_TRUE(contains(o.text, "password_env")) << o.text;
  EXPECT_FALSE(contains(o.text, "s3cret")) << "it may be a password without its colon: " << o.text;
}

TEST(redis_bad_input, a_password_where_the_name_of_a_variable_belongs_is_not_repeated) {
  const auto o = opening("redis://app@h?password_env=s3cret-word");
  EXPECT_EQ(o.reason, errc::invalid_argument) << o.text;
  EXPECT_TRUE(contains(o.text, "environment variable")) << o.text;
  EXPECT_FALSE(contains(o.text, "s3cret")) << o.text;
}

TEST(redis_bad_input, a_user_whose_password_is_empty_logs_in_as_that_user) {
  const harness::redis_server server;
  server.ask({"ACL", "SETUSER", "app", "on", "nopass", "~*", "&*", "+@all"});
  const auto s = holdfast::open("redis://app:@127.0.0.1:" + std::to_string(server.port()));
  EXPECT_TRUE(contains(server.ask({"CLIENT", "LIST"}), "user=app"));
}

TEST(redis_bad_input, a_password_source_without_a_password_is_named) {
  ::setenv("HOLDFAST_TEST_EMPTY", "", 1);
  expect_refused("redis://app@h?password_env=HOLDFAST_TEST_EMPTY", "password_env");
  const harness::temp_dir dir;
  std::ofstream(dir.file("empty")) << "\n";
  expect_refused("redis://app@h?password_file=" + dir.file("empty"), "password_file");
}

TEST(redis_bad_input, a_question_mark_in_a_password_is_refused_with_its_escape) {
  const auto o = opening("redis://app:12?prefix=s3cret@h");
  EXPECT_EQ(o.reason, errc::invalid_argument) << o.text;
  EXPECT_TRUE(contains(o.text, "%3F")) << o.text;
  EXPECT_FALSE(contains(o.text, "s3cret")) << o.text;
}

TEST(redis_bad_input, protected_mode_is_not_permitted_and_the_error_names_the_remedy) {
  const fake_redis server([](const fake_redis::words&) {
    return "-DENIED Redis is running in protected mode because protected mode is enabled\r\n";
  });
  const auto o = opening(server.url());
  EXPECT_EQ(o.reason, errc::not_permitted) << o.text;
  EXPECT_TRUE(contains(o.text, "set a password")) << o.text;
}

TEST(redis_bad_input, a_version_that_is_too_old_is_unsupported_and_both_are_named) {
  const fake_redis server([](const fake_redis::words& w) {
    return w[0] == "INFO" ? harness::bulk("# Server\r\nredis_version:4.0.14\r\n") : std::string();
  });
  const auto o = opening(server.url());
  EXPECT_EQ(o.reason, errc::unsupported) << o.text;
  EXPECT_TRUE(contains(o.text, "4.0.14")) << o.text;
  EXPECT_TRUE(contains(o.text, "5.0")) << o.text;
}

TEST(redis_bad_input, a_server_without_hello_is_greeted_in_the_older_way) {
  std::atomic<bool> logged_in{false};
  const fake_redis server([&](const fake_redis::words& w) -> std::string {
    if (w[0] == "HELLO") return "-ERR unknown command `HELLO`\r\n";
    if (w[0] == "AUTH") logged_in = w[1] == "app" && w[2] == "pw";
    return {};
  });
  const auto port = server.url().substr(server.url().rfind(':'));
  EXPECT_EQ(opening("redis://app:pw@127.0.0.1" + port).text, "");
  EXPECT_TRUE(logged_in);
}

TEST(redis_bad_input, the_answer_of_the_server_to_a_login_is_not_repeated) {
  const std::string secret = "s3cr3t-and-quite-long";
  // The answers of a server without AUTH, of one that cuts the text off, of one with other words,
  // and of a server that is not Redis.
  const std::vector<std::string> answers{
      "-ERR unknown command `AUTH`, with args beginning with: `app`, `" + secret + "`, \r\n",
      "-ERR unknown command 'AUTH', with args beginning with: 'app' 's3cr3t-and-qu\r\n",
      "-WRONGPASS invalid password " + secret + "\r\n",
      "-NOPERM 's3cr3t\r\n",
      "-what is " + secret + "?\r\n",
      "what is " + secret + "?\r\n"};
  for (const auto& says : answers) {
    const fake_redis server([&](const fake_redis::words& w) -> std::string {
      if (w[0] == "HELLO") return "-ERR unknown command 'HELLO', with args beginning with: '3'\r\n";
      return w[0] == "AUTH" ? says : std::string();
    });
    const fake_redis newer(
        [&](const fake_redis::words& w) { return w[0] == "HELLO" ? says : std::string(); });
    for (const auto* const one : {&server, &newer}) {
      const auto port = one->url().substr(one->url().rfind(':'));
      const auto o = opening("redis://app:" + secret + "@127.0.0.1" + port);
      const bool passes = one == &newer && contains(says, "unknown command");  // AUTH is sent then
      EXPECT_EQ(o.failed, !passes) << says;
      EXPECT_FALSE(contains(o.text, "s3cr3t")) << o.text;
    }
  }
}

TEST(redis_bad_input, a_hidden_node_of_a_cluster_is_recognised_by_its_errors) {
  for (const std::string says : {"-MOVED 42 10.0.0.1:6379\r\n", "-ASK 42 10.0.0.1:6379\r\n"}) {
    const fake_redis server(
        [&](const fake_redis::words& w) { return w[0] == "EVALSHA" ? says : std::string(); });
    const auto o = outcome_of([&] {
      auto s = holdfast::open(server.url());
      (void)holdfast::mutex(s, "m").try_lock();
    });
    EXPECT_EQ(o.reason, errc::unsupported) << o.text;
    EXPECT_TRUE(contains(o.text, "redis+cluster://")) << o.text;
  }
}

// The connection broke after the server had carried out the request, and the server of the next
// connection refuses.
TEST(redis_bad_input, a_refusal_after_a_lost_answer_leaves_the_outcome_unknown) {
  const std::vector<std::function<void(const holdfast::session&)>> calls{
      [](const holdfast::session& s) { holdfast::latch(s, "n", 2).count_down(); },
      [](const holdfast::session& s) { (void)holdfast::mutex(s, "n").try_lock(); },
      [](const holdfast::session& s) {
        holdfast::mutex a(s, "a"), b(s, "b");
        (void)holdfast::multi_lock{a, b}.try_lock();
      }};
  for (const std::string options : {"", "?dialect=redisson"}) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      std::atomic<int> asked{0};
      const fake_redis server([&](const fake_redis::words& w) -> std::string {
        if (w[0] != "EVALSHA") return {};
        return asked++ == 0 ? fake_redis::hang_up : "-READONLY it is a replica\r\n";
      });
      const auto s =
          holdfast::open(server.url(options), {.store_timeout = std::chrono::milliseconds(0)});
      const auto o = outcome_of([&] { calls[i](s); });
      EXPECT_TRUE(o.unknown) << options << i << o.text;
      EXPECT_EQ(asked, 2) << options << i;
    }
  }
}

TEST(redis_bad_input, an_answer_of_four_gigabytes_is_refused_when_it_is_announced) {
  const fake_redis server([&](const fake_redis::words& w) {
    return w[0] == "EVALSHA" ? "$4294967296\r\n" : std::string();
  });
  auto s = holdfast::open(server.url("?command_timeout=30s"));
  const auto o = outcome_of([&] { (void)holdfast::mutex(s, "m").try_lock(); });
  EXPECT_EQ(o.reason, errc::unavailable) << o.text;
  EXPECT_TRUE(contains(o.text, "a string of 4294967296 bytes")) << o.text;
}

TEST(redis_bad_input, tls_to_a_silent_server_times_out) {
  const harness::fake_server silent([](std::string&) { return std::string(); });
  const auto o =
      opening("rediss://127.0.0.1:" + std::to_string(silent.port()) + "?connect_timeout=200ms");
  EXPECT_EQ(o.reason, errc::unavailable) << o.text;
  EXPECT_TRUE(contains(o.text, "no answer to the handshake in time")) << o.text;
}

}  // namespace
