#include <gtest/gtest.h>
#include <holdfast/holdfast.hpp>

#include <algorithm>
#include <array>

#include "harness/redis_server.hpp"
#include "harness/seed.hpp"

// A secret in a URL is never shown, however it is written.
namespace {

using holdfast::without_secrets;

std::string message_of(const std::string& url) {
  try {
    (void)holdfast::open(url, {.store_timeout = std::chrono::milliseconds(0)});
  } catch (const holdfast::error& e) {
    return e.what();
  }
  return {};
}

TEST(secrets, a_password_is_blanked_and_the_rest_is_shown) {
  EXPECT_EQ(without_secrets("redis://u:secret@h/0"), "redis://u:***@h/0");
  EXPECT_EQ(without_secrets("redis://:secret@h/0"), "redis://:***@h/0");
  EXPECT_EQ(without_secrets("redis://u:a/b@h/0"), "redis://u:***@h/0");
  EXPECT_EQ(without_secrets("postgres://u:a@b@h/db"), "postgres://u:***@h/db");
  EXPECT_EQ(without_secrets("etcd://u:a%2Fb%40c@h1,h2/locks"), "etcd://u:***@h1,h2/locks");
  EXPECT_EQ(without_secrets("REDIS://u:a?b@h"), "REDIS://u:***");
  EXPECT_EQ(without_secrets("redis://u%3Asecret%40h"), "redis://u%3A***%40h");
  EXPECT_EQ(without_secrets("redis:u:secret@h"), "redis:***@h");
  EXPECT_EQ(without_secrets("redis//u:secret@h"), "redis//u:***@h");
  EXPECT_EQ(without_secrets("sqlite://u:secret@h/x"), "sqlite://u:***@h/x");
}

TEST(secrets, a_text_without_a_password_is_shown_unchanged) {
  for (const char* const url :
       {"", "memory:x", "sqlite:/a:b@c", "sqlite:a@b?network=allow", "redis://h:6379/0",
        "redis://h?password_env=REDIS_PASSWORD", "redis://u@h?password_file=/run/secrets/redis",
        "redis+unix:///run/a@b.sock", "redis+sentinel://h1:1,h2:2/mymaster/0",
        "redis+cluster://[::1]:7000,[::2]", "postgres://me@h:5432/db?sslmode=require",
        "postgres://h/db?listen=never", "postgres://h/db?listen=postgres%3A%2F%2Fd:5432%2Fdb",
        "postgres://h/db?listen=postgres://d:5432/db&connections=3", "zookeeper://h1,h2:2181/a",
        "file:/run/store@x:y"}) {
    EXPECT_EQ(without_secrets(url), url);
    EXPECT_TRUE(holdfast::secrets_in(url).empty()) << url;
  }
}

TEST(secrets, a_value_is_shown_only_of_an_option_that_a_store_knows) {
  EXPECT_EQ(without_secrets("redis://h?prefix=a&password=secret"),
            "redis://h?prefix=a&password=***");
  EXPECT_EQ(without_secrets("redis://h?pasword=sec&ret=1"), "redis://h?pasword=***");
  EXPECT_EQ(without_secrets("redis://h?secret"), "redis://h?***");
  EXPECT_EQ(without_secrets("sqlite:x?password=secret"), "sqlite:x?password=***");
}

TEST(secrets, of_a_url_within_an_option_are_blanked_too) {
  EXPECT_EQ(without_secrets("postgres://h/db?listen=postgres%3A%2F%2Fu%3Asecret%40h2"),
            "postgres://h/db?listen=***");
  EXPECT_EQ(without_secrets("postgres://h/db?listen=postgres://u:secret%40h2&connections=3"),
            "postgres://h/db?listen=***");
  const auto refused = without_secrets("postgres://h/db?listen=postgres://u:secret@h2");
  EXPECT_EQ(refused.find("secret"), refused.npos) << refused;
}

TEST(secrets, a_word_where_a_password_may_lack_its_colon_or_its_host_is_one) {
  EXPECT_EQ(without_secrets("redis://secret@h"), "redis://***@h");
  EXPECT_EQ(without_secrets("postgres://me@h"), "postgres://me@h");
  EXPECT_EQ(without_secrets("redis://me:secret"), "redis://me:***");
  EXPECT_EQ(without_secrets("etcd://h:1,me:sec/ret,x"), "etcd://h:1,me:***");
}

TEST(secrets, are_found_at_their_position) {
  const std::string url = "redis://u:secret@h?password=other";
  const auto found = holdfast::secrets_in(url);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].data(), url.data() + 10);
  EXPECT_EQ(found[0], "secret");
  EXPECT_EQ(found[1], "other");
}

TEST(secrets, are_not_in_the_message_that_a_store_is_away) {
  const std::string nobody = "127.0.0.1:" + std::to_string(harness::free_port());
  for (const std::string scheme :
       {"redis", "redis+sentinel", "redis+cluster", "postgres", "mariadb", "zookeeper", "etcd"}) {
    for (const std::string password : {"s3cr%2Fet", "s3cr/et", "s3cr%40et", "12/et"}) {
      const bool sentinel = scheme == "redis+sentinel", cluster = scheme == "redis+cluster";
      const std::string path = sentinel ? "/et0" : cluster ? "" : scheme == "redis" ? "/0" : "/db";
      const auto message =
          message_of(scheme + "://me:" + password + "@" + nobody + path + "?connect_timeout=50ms");
      EXPECT_FALSE(message.empty()) << scheme;
      EXPECT_EQ(message.find("s3cr"), message.npos) << message;
      EXPECT_EQ(message.find("et@"), message.npos) << message;
      EXPECT_EQ(message.find(":12/"), message.npos) << message;
    }
  }
}

// ---- at random --------------------------------------------------------------------------------

constexpr std::array pieces{"s3cr", "T0pz", "wJ7q"};

std::string percent(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string all;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    all += {'%', digits[byte >> 4], digits[byte & 15]};
  }
  return all;
}

/// The pieces, with characters that a password may have between them: as they are, or escaped.
std::string random_secret(harness::random& dice, std::string_view junk) {
  std::string secret;
  for (const std::string piece : pieces) {
    if (!secret.empty()) {
      for (int more = dice.between(0, 3); more > 0; --more) {
        const std::string c(1, junk[dice.between<std::size_t>(0, junk.size() - 1)]);
        secret += dice.one_in(2) ? percent(c) : c;
      }
    }
    secret += piece;
  }
  return secret;
}

constexpr std::string_view any_junk = "/@?#:%&=+[],. {}~!$'\"\\|";

constexpr std::array schemes{"redis",          "rediss",     "redis+sentinel", "rediss+sentinel",
                             "redis+cluster",  "postgres",   "mariadb",        "mysql",
                             "zookeeper",      "etcd",       "etcds",          "memcached",
                             "rediss+cluster", "postgresql", "reddis",         "sqlite",
                             "memory",         "http",       "REDIS",          "Postgres"};
constexpr std::array hosts{"h", "h:1", "h1,h2:2", "[::1]:7", "127.0.0.1", "h:x", "", ":"};
constexpr std::array options{"password", "pasword", "pw", "secret", "auth", "listen"};
constexpr std::array paths{"", "/", "/0", "/db", "/a/b", "/x/y/../z"};
/// Each makes a URL that is refused before a connection is made.
constexpr std::array defects{"connect_timeout=never", "nosuch=1", "x", "=1", "prefix=%zz",
                             "command_timeout=-1"};

std::string random_url(harness::random& dice) {
  const std::string scheme = dice.pick(schemes);
  const bool path = scheme == "sqlite" || scheme == "memory";  // without the //
  const std::string start = scheme + (!path && dice.one_in(20) ? ":" : "://");
  const std::string where = std::string(dice.pick(hosts)) + dice.pick(paths);
  const std::string user = dice.one_in(3) ? "" : dice.one_in(4) ? "me%3Ayou" : "me";
  const std::string defect = dice.pick(defects);
  switch (dice.between(0, 6)) {
    case 0:
      return start + where + "?" + (dice.one_in(2) ? "prefix=a&" : "") + dice.pick(options) + "=" +
             random_secret(dice, any_junk) + "&" + defect;
    case 1: {
      const auto inner = "postgres://" + user + ":" + random_secret(dice, any_junk) + "@" + where;
      return start + where + "?listen=" + (dice.one_in(2) ? percent(inner) : inner) + "&" + defect;
    }
    case 2:
      return start + user + ":" + random_secret(dice, "/:%&+[],.~") + "?" + defect;
    case 3:
      return start + where + "?" + random_secret(dice, "/@?#:%") + "&" + defect;
    default:
      return start + user + ":" + random_secret(dice, any_junk) + "@" + where + "?" + defect;
  }
}

bool shows_piece(const std::string& text) {
  return std::any_of(pieces.begin(), pieces.end(),
                     [&](const char* piece) { return text.find(piece) != text.npos; });
}

TEST(secrets, of_random_urls_are_in_no_message) {
  harness::random dice(71);
  for (int round = 0; round < 20'000; ++round) {
    const std::string url = random_url(dice);
    const std::string shown = without_secrets(url);
    ASSERT_FALSE(shows_piece(shown)) << url << " is shown as " << shown;
    const std::string message = message_of(url);
    ASSERT_FALSE(message.empty()) << url;
    ASSERT_FALSE(shows_piece(message)) << url << ": " << message;
  }
}

TEST(secrets, of_random_text_are_found_inside_it_and_in_order) {
  harness::random dice(72);
  constexpr std::string_view letters = "/:@?&=%40 3Aa[],#redis+postgres://listen=password=";
  int found = 0;
  for (int round = 0; round < 50'000; ++round) {
    std::string text = dice.one_in(2) ? "redis://" : "";
    for (int more = dice.between(0, 40); more > 0; --more)
      text += dice.one_in(10) ? static_cast<char>(dice.between(0, 255))
                              : letters[dice.between<std::size_t>(0, letters.size() - 1)];
    const char* at = text.data();
    for (const auto secret : holdfast::secrets_in(text)) {
      ASSERT_FALSE(secret.empty());
      ASSERT_GE(secret.data(), at) << text;
      at = secret.data() + secret.size();
      ASSERT_LE(at, text.data() + text.size()) << text;
      ++found;
    }
  }
  EXPECT_GT(found, 0);
}

}  // namespace
