#include "base/option.hpp"

#include <gtest/gtest.h>
#include <holdfast/holdfast.hpp>

#include <array>

namespace {

using namespace std::chrono_literals;
using namespace holdfast::base;
using holdfast::errc;

std::string message_of(const std::string& url) {
  try {
    (void)holdfast::open(url, {.store_timeout = 0ms});
  } catch (const holdfast::error& e) {
    return e.what();
  }
  return {};
}

TEST(url, is_taken_apart_before_it_is_decoded) {
  const auto u = parse_url("etcd://m%40e:a%2Fb%3A%40c%3F@h1,[::1]:7/base%2F1/x?session=2s");
  ASSERT_TRUE(u);
  EXPECT_EQ(u->user, "m@e");
  EXPECT_EQ(u->password, "a/b:@c?");
  EXPECT_EQ(*u->servers(9), (std::vector<address>{{"h1", 9}, {"::1", 7}}));
  EXPECT_EQ(u->path, "/base/1/x");
  EXPECT_EQ(u->shown_user(), "etcd://m@e@");
}

TEST(url, a_password_may_contain_an_unescaped_slash_and_at) {
  const auto u = parse_url("zookeeper://me:a/b@c@h/base");
  ASSERT_TRUE(u);
  EXPECT_EQ(u->password, "a/b@c");
  EXPECT_EQ(u->hosts, "h");
  EXPECT_EQ(u->path, "/base");
}

TEST(url, a_password_behind_an_encoded_colon_is_refused_and_not_shown) {
  const auto u = parse_url("postgres://me%3As3cret@host/db");
  ASSERT_FALSE(u);
  EXPECT_EQ(u.error().what.find("s3cret"), std::string::npos) << u.error().what;
  EXPECT_EQ(message_of("etcd://s3cret%40host").find("s3cret"), std::string::npos);
}

TEST(url, malformed_hosts_are_refused) {
  for (const char* const bad :
       {"redis://", "redis://h:0", "redis://h:x", "redis://h:65536", "redis://::1", "redis://[::1",
        "redis://[::1]x", "redis://h,,i", "redis://h%zz"}) {
    const auto u = parse_url(bad);
    EXPECT_FALSE(u && u->servers(1)) << bad;
  }
}

TEST(url, is_taken_apart_into_scheme_path_and_options) {
  const auto u = parse_url("sqlite:a%20b.db?synchronous=full&busy_timeout=2s");
  ASSERT_TRUE(u);
  EXPECT_EQ(u->scheme, "sqlite");
  EXPECT_EQ(u->path, "a b.db");
  EXPECT_EQ(*u->option("busy_timeout"), "2s");
  EXPECT_EQ(u->option("nothing"), nullptr);
}

TEST(url, a_blank_at_the_end_is_no_part_of_it) {
  for (const char* const bad :
       {"sqlite:c.db ", "redis://h ", "memory:\n", "redis://h?prefix=a\t"}) {
    EXPECT_NE(message_of(bad).find("ends with a blank"), std::string::npos) << message_of(bad);
  }
  EXPECT_EQ(parse_url("sqlite:c.db%20")->path, "c.db ");
}

TEST(url, malformed_urls_are_refused) {
  for (const char* const bad : {"", "sqlite", ":x", "sqlite:a%", "sqlite:a%2", "sqlite:%zz",
                                "sqlite:a%00b", "sqlite:a?novalue", "sqlite:a?=1", "memory:x?a"}) {
    EXPECT_FALSE(parse_url(bad)) << bad;
  }
}

TEST(url, without_its_colon_is_answered_by_the_url_with_it) {
  EXPECT_NE(message_of("redis//h").find("did you mean redis://"), std::string::npos)
      << message_of("redis//h");
  EXPECT_NE(message_of("Redis+Sentinel//h,i/m").find("did you mean redis+sentinel://"),
            std::string::npos);
  EXPECT_EQ(message_of("//h").find("did you mean"), std::string::npos);
}

TEST(url, that_names_two_places_of_the_password_is_refused) {
  ::setenv("HOLDFAST_TEST_TWICE", "pw", 1);
  for (const std::string two :
       {"redis://u:s3cret@h?password_env=HOLDFAST_TEST_TWICE",
        "postgres://u:s3cret@h/db?password_env=HOLDFAST_TEST_TWICE",
        "mariadb://u:@h/db?password_env=HOLDFAST_TEST_TWICE",
        "etcd://u:s3cret@h?password_file=/dev/null", "zookeeper://u:s3cret@h?password_file=/x",
        "redis://u@h?password_env=HOLDFAST_TEST_TWICE&password_file=/x"}) {
    const std::string said = message_of(two);
    if (said.find("without the store") != said.npos) continue;
    EXPECT_NE(said.find("more than once where the password is"), std::string::npos) << said;
    EXPECT_EQ(said.find("s3cret"), std::string::npos) << said;
  }
}

// It would be a folder called ~ in the present one.
TEST(url, with_a_tilde_for_the_home_folder_is_refused_with_the_right_form) {
  for (const std::string url : {"sqlite:~/x/locks.db", "file:~/store",
                                "redis://h?password_file=~/pw", "rediss://h?ca=~/ca.pem"}) {
    const std::string said = message_of(url);
    if (said.find("without the store") != said.npos) continue;
    EXPECT_NE(said.find("is not your home folder"), std::string::npos) << said;
    EXPECT_NE(said.find("$HOME/"), std::string::npos) << said;
  }
}

TEST(url, an_unknown_scheme_or_option_names_the_nearest_one) {
  EXPECT_NE(message_of("sqlit:x").find("did you mean 'sqlite:'"), std::string::npos);
  EXPECT_NE(message_of("reddis://x").find("did you mean 'redis:'"), std::string::npos);
  EXPECT_NE(message_of("sqlite:x?syncronous=full").find("did you mean 'synchronous'"),
            std::string::npos);
  EXPECT_NE(message_of("http://x").find("there is no store"), std::string::npos);
#ifndef HOLDFAST_WITH_ETCD
  EXPECT_NE(message_of("etcd://h").find("built without"), std::string::npos);
#endif
  EXPECT_NE(message_of("sqlite:").find("sqlite:locks.db"), std::string::npos);
}

TEST(url, a_message_never_repeats_a_possible_password) {
  EXPECT_EQ(message_of("ettcd://user:secret@127.0.0.1:1").find("secret"), std::string::npos);
  EXPECT_EQ(message_of("etcd://user:secret@127.0.0.1:1").find("secret"), std::string::npos);
  EXPECT_EQ(message_of("user:secret@127.0.0.1:1").find("secret"), std::string::npos);
  EXPECT_EQ(message_of("ettcd://u:secret%zz@127.0.0.1:1").find("secret"), std::string::npos);
  EXPECT_EQ(message_of("redis//:secret@127.0.0.1:1/%zz@").find("secret"), std::string::npos);
  EXPECT_EQ(message_of("redis://u:pa?secret=x@127.0.0.1:1").find("secret"), std::string::npos);
  EXPECT_EQ(message_of("redis:///:secret@127.0.0.1:1").find("secret"), std::string::npos);
}

TEST(url, durations_are_written_as_people_write_them) {
  EXPECT_EQ(*parse_duration("250ms"), 250ms);
  EXPECT_EQ(*parse_duration("1.5s"), 1500ms);
  EXPECT_EQ(*parse_duration("2m"), 2min);
  EXPECT_EQ(*parse_duration("1h30m"), 90min);
  EXPECT_EQ(*parse_duration("7"), 7s);
  EXPECT_EQ(*parse_duration("0"), 0ms);
  EXPECT_GT(*parse_duration("10000000000h"), 24h * 365'000) << "long, and still a duration";
  EXPECT_EQ(*parse_duration("1e300h"), *parse_duration("1e308h1e308h"));
  for (const char* const bad : {"", "x", "-1s", "1x", "1s2", "s", "nan", "infh", "inf", "1 s"}) {
    EXPECT_FALSE(parse_duration(bad)) << bad;
  }
}

}  // namespace
