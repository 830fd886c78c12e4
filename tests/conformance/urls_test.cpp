#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "conformance/exclusive.hpp"

// URLs that open() does not understand: the problem, and the nearest valid form.
namespace conformance {
namespace {

using holdfast::errc;

struct bad_url {
  std::string url;
  errc reason;
  std::string says;  // somewhere in the message
};

std::string message_of(const std::string& url) {
  try {
    (void)holdfast::open(url);
  } catch (const holdfast::error& e) {
    return e.what();
  }
  return "";
}

TEST(urls, that_name_no_store_are_refused_with_an_example) {
  for (const char* url : {"", ":", "locks.db", "/tmp/locks.db", ":memory:", "C"}) {
    EXPECT_EQ(reason_of([&] { (void)holdfast::open(url); }), errc::invalid_argument) << url;
    EXPECT_NE(message_of(url).find("sqlite:"), std::string::npos) << message_of(url);
  }
}

TEST(urls, unknown_schemes_are_refused_with_the_nearest_valid_one) {
  const bad_url cases[] = {{"memroy:", errc::invalid_argument, "memory"},
                           {"mem:", errc::invalid_argument, ""},
                           {"sqllite:x", errc::invalid_argument, "sqlite"},
                           {"sqlite3:x", errc::invalid_argument, "sqlite"},
                           {"SQLLITE:x", errc::invalid_argument, "sqlite"},
                           {"rediss+:x", errc::invalid_argument, "redis"},
                           {"postgresql:x", errc::invalid_argument, "postgres"},
                           {"http://x", errc::invalid_argument, ""},
                           {"qqqqqqqqqq:x", errc::invalid_argument, "qqqqqqqqqq"}};
  for (const auto& c : cases) {
    EXPECT_EQ(reason_of([&] { (void)holdfast::open(c.url); }), c.reason) << c.url;
    EXPECT_NE(message_of(c.url).find(c.says), std::string::npos) << message_of(c.url);
  }
}

TEST(urls, a_scheme_has_no_case) { EXPECT_NO_THROW((void)holdfast::open("MEMORY:")); }

TEST(urls, unknown_options_are_refused_with_the_nearest_valid_one) {
  EXPECT_EQ(reason_of([] { (void)holdfast::open("memory:?lease=3"); }), errc::invalid_argument);
  EXPECT_NE(message_of("memory:?lease=3").find("lease"), std::string::npos);
#ifdef HOLDFAST_WITH_SQLITE
  EXPECT_NE(message_of("sqlite:x.db?busytimeout=3").find("busy_timeout"), std::string::npos)
      << message_of("sqlite:x.db?busytimeout=3");
#endif
}

TEST(urls, malformed_options_and_escapes_are_refused) {
  for (const char* url : {"memory:a?x", "memory:a?=1", "memory:a?&", "memory:%", "memory:%4",
                          "memory:%zz", "memory:a%00b", "memory:a?x=%"}) {
    EXPECT_EQ(reason_of([&] { (void)holdfast::open(url); }), errc::invalid_argument) << url;
  }
}

// A part that a person left out, or a script's variable that was not set.
TEST(urls, an_empty_host_or_value_is_refused_and_the_missing_part_named) {
  const bad_url cases[] = {
#ifdef HOLDFAST_WITH_SQLITE
      {"sqlite:", errc::invalid_argument, "path"},
      {"sqlite:x.db?busy_timeout=", errc::invalid_argument, "busy_timeout"},
#endif
#ifdef HOLDFAST_WITH_REDIS
      {"redis://", errc::invalid_argument, "no host"},
      {"redis://:6379", errc::invalid_argument, "no host"},
      {"redis+sentinel://a,,b/m", errc::invalid_argument, "no host"},
      {"redis://h?prefix=", errc::invalid_argument, "prefix"},
      {"redis://h?password_file=", errc::invalid_argument, "password_file"},
      {"rediss://h?ca=", errc::invalid_argument, "ca="},
#endif
#ifdef HOLDFAST_WITH_POSTGRES
      {"postgres://:6543/db", errc::invalid_argument, "no host"},
      {"postgres://h/db?schema=", errc::invalid_argument, "schema"},
#endif
#ifdef HOLDFAST_WITH_MARIADB
      {"mariadb://:3307/db", errc::invalid_argument, "no host"},
      {"mariadb://h/db?ssl_ca=", errc::invalid_argument, "ssl_ca"},
#endif
#ifdef HOLDFAST_WITH_ETCD
      {"etcd://", errc::invalid_argument, "no host"},
      {"etcds://h?ca=", errc::invalid_argument, "ca="},
#endif
#ifdef HOLDFAST_WITH_ZOOKEEPER
      {"zookeeper://:2181/x", errc::invalid_argument, "no host"},
      {"zookeeper://h?session=", errc::invalid_argument, "session"},
#endif
#ifdef HOLDFAST_WITH_MEMCACHED
      {"memcached://:11211", errc::invalid_argument, "no host"},
      {"memcached://h?prefix=", errc::invalid_argument, "prefix"},
#endif
      {"memory:?=", errc::invalid_argument, "option"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(reason_of([&] { (void)holdfast::open(c.url); }), c.reason) << c.url;
    EXPECT_NE(message_of(c.url).find(c.says), std::string::npos) << message_of(c.url);
  }
}

TEST(urls, an_escaped_name_is_the_same_store_as_the_plain_one) {
  const auto plain = holdfast::open("memory:urls b");
  const auto escaped = holdfast::open("memory:urls%20b");
  holdfast::mutex a{plain, "n"};
  holdfast::mutex b{escaped, "n"};
  a.lock();
  EXPECT_FALSE(b.try_lock());
  a.unlock();
}

TEST(urls, memory_without_a_name_is_a_space_of_its_own) {
  holdfast::mutex a{holdfast::open("memory:"), "n"};
  holdfast::mutex b{holdfast::open("memory:"), "n"};
  EXPECT_TRUE(a.try_lock());
  EXPECT_TRUE(b.try_lock());
}

TEST(urls, a_message_never_has_control_characters_of_the_url) {
  EXPECT_EQ(message_of("me\x1b[31m:x").find('\x1b'), std::string::npos);
  EXPECT_EQ(message_of("memory:x?a\nb=1").find('\n'), std::string::npos);
}

TEST(urls, a_password_is_never_repeated) {
  for (const char* url : {"redsi://me:s3cret@host/0", "redis//me:s3cret@host",
                          "postgres://me:s3cret@host/db?sslmode", "memory:x?password=s3cret"}) {
    EXPECT_EQ(message_of(url).find("s3cret"), std::string::npos) << message_of(url);
  }
}

}  // namespace
}  // namespace conformance
