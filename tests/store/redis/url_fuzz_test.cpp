#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

#include "base/store_url.hpp"
#include "harness/seed.hpp"
#include "store/redis/options.hpp"

// Random addresses: the parsed value is the written one, and no output repeats a password.
namespace {

using namespace holdfast::store::redis;
using holdfast::errc;
using holdfast::failure;
using holdfast::result;
namespace base = holdfast::base;

// As open() does it, up to where it would connect.
result<redis_options> parse(const std::string& text) {
  auto u = base::parse_url(text);
  if (!u) return u.error();
  // The environment and files are not random.
  std::erase_if(u->options, [](const auto& o) { return o.first.starts_with("password_"); });
  return read_options(*u);
}

std::string letters(harness::random& dice, std::size_t longest, std::string_view of) {
  std::string text(dice.between<std::size_t>(1, longest), '\0');
  for (char& c : text) c = of[dice.between<std::size_t>(0, of.size() - 1)];
  return text;
}

std::string any_bytes(harness::random& dice, std::size_t longest, std::string_view but) {
  std::string text(dice.between<std::size_t>(1, longest), 'x');
  for (char& c : text) {
    const auto byte = static_cast<char>(dice.between(1, 255));
    if (but.find(byte) == but.npos) c = byte;
  }
  return text;
}

std::string escaped(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string all;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      all += c;
    } else {
      all += {'%', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return all;
}

struct written {
  std::string text;
  redis_options means;
};

address random_address(harness::random& dice, std::uint16_t usual_port, std::string& text) {
  address a{letters(dice, 20, "abcxyz0189.-"), usual_port};
  if (dice.one_in(4)) a.host = letters(dice, 20, "0123456789abcdef:") + ":";
  const bool v6 = a.host.find(':') != a.host.npos;
  text += v6 ? "[" + a.host + "]" : a.host;
  if (dice.one_in(2)) {
    a.port = dice.between<std::uint16_t>(1, 65535);
    text += ":" + std::to_string(a.port);
  }
  return a;
}

void write_place(harness::random& dice, written& w) {
  std::string place;
  if (w.text.starts_with("redis+unix")) {
    w.means.unix_path = "/" + any_bytes(dice, 30, "@");
    w.text += "/" + escaped(w.means.unix_path.substr(1));
    return;
  }
  const std::uint16_t port = w.means.topology == topology::sentinel ? 26379 : 6379;
  if (w.means.topology == topology::single) {
    const auto a = random_address(dice, port, place);
    w.means.host = a.host;
    w.means.port = a.port;
  } else {
    for (int more = dice.between(1, 3); more > 0; --more) {
      w.means.seeds.push_back(random_address(dice, port, place));
      if (more > 1) place += ",";
    }
  }
  w.text += place;
  if (w.means.topology == topology::sentinel) {
    w.means.primary_name = any_bytes(dice, 10, "/@");
    w.text += "/" + escaped(w.means.primary_name);
  }
  if (w.means.topology == topology::cluster || dice.one_in(2)) return;
  w.means.database = dice.between(0U, 1'000'000U);
  w.text += "/" + std::to_string(w.means.database);
}

written random_url(harness::random& dice, const std::string& password) {
  static constexpr std::array schemes{"redis", "rediss", "redis+unix", "redis+sentinel",
                                      "redis+cluster"};
  const std::string scheme = dice.pick(schemes);
  written w{scheme + "://", {}};
  w.means.tls = scheme == "rediss";
  if (scheme == "redis+sentinel") w.means.topology = topology::sentinel;
  if (scheme == "redis+cluster") w.means.topology = topology::cluster;
  if (!password.empty()) {
    w.means.password = password;
    if (dice.one_in(2)) w.means.user = any_bytes(dice, 10, ":/");
    w.text += escaped(w.means.user) + ":" + escaped(password) + "@";
  }
  write_place(dice, w);
  if (dice.one_in(2)) {
    const auto ms = dice.between(1, 100'000);
    w.means.command_timeout = std::chrono::milliseconds(ms);
    w.text += "?command_timeout=" + std::to_string(ms) + "ms";
    if (dice.one_in(2)) {
      w.means.prefix = letters(dice, 20, "abc:_-@");
      w.text += "&prefix=" + escaped(w.means.prefix);
    }
  }
  return w;
}

TEST(redis_url_fuzz, a_written_url_is_read_back_unchanged) {
  harness::random dice(41);
  for (int round = 0; round < 20'000; ++round) {
    const auto w = random_url(dice, dice.one_in(3) ? "" : any_bytes(dice, 20, ""));
    const auto o = parse(w.text);
    ASSERT_TRUE(o) << w.text << ": " << o.error().what;
    EXPECT_EQ(o->user, w.means.user) << w.text;
    EXPECT_EQ(o->password, w.means.password) << w.text;
    EXPECT_EQ(o->unix_path, w.means.unix_path) << w.text;
    EXPECT_EQ(o->tls, w.means.tls) << w.text;
    EXPECT_EQ(o->topology, w.means.topology) << w.text;
    EXPECT_EQ(o->seeds, w.means.seeds) << w.text;
    EXPECT_EQ(o->primary_name, w.means.primary_name) << w.text;
    EXPECT_EQ(o->host, w.means.host) << w.text;
    EXPECT_EQ(o->port, w.means.port) << w.text;
    EXPECT_EQ(o->database, w.means.database) << w.text;
    EXPECT_EQ(o->command_timeout, w.means.command_timeout) << w.text;
    EXPECT_EQ(o->prefix, w.means.prefix) << w.text;
    ASSERT_FALSE(HasFailure());
  }
}

// The password stays, between its : and @; the text around it may be damaged.
std::string damaged(harness::random& dice, std::string text, const std::string& password) {
  for (int hits = dice.between(1, 4); hits > 0; --hits) {
    const auto secret = text.find(password);
    const auto at = dice.between<std::size_t>(0, text.size() - 1);
    if (at + 1 >= secret && at <= secret + password.size()) continue;
    const char c = dice.one_in(3) ? static_cast<char>(dice.between(0, 255))
                                  : "/:@?&=%[],.0a#+"[dice.between(0, 14)];
    const auto kind = dice.between(0, 2);
    if (kind == 0) text[at] = c;
    if (kind == 1) text.insert(at, 1, c);
    if (kind == 2) text.erase(at, 1);
  }
  return text;
}

TEST(redis_url_fuzz, a_damaged_url_is_read_or_refused_and_its_password_never_shown) {
  harness::random dice(42);
  const std::string password = "Pa55w0rd";
  int refused = 0;
  for (int round = 0; round < 50'000; ++round) {
    const auto whole = random_url(dice, password).text;
    if (whole.starts_with("redis+unix")) continue;  // with one more / in front, all of it is a path
    const auto text = damaged(dice, whole, password);
    const auto o = parse(text);
    const std::string shown = o ? o->url : o.error().what;
    ASSERT_EQ(shown.find(password), shown.npos) << text << " is shown as " << shown;
    if (o) continue;
    ++refused;
    ASSERT_EQ(o.error().code, errc::invalid_argument) << text << ": " << shown;
  }
  EXPECT_GT(refused, 10'000);
}

TEST(redis_url_fuzz, any_text_as_a_url_is_read_or_refused) {
  harness::random dice(43);
  for (int round = 0; round < 50'000; ++round) {
    std::string text = dice.one_in(2) ? "redis://" : "redis+sentinel://";
    for (int more = dice.between(0, 40); more > 0; --more) {
      text += dice.one_in(8) ? static_cast<char>(dice.between(0, 255))
                             : "/:@?&=%[],.019abcport"[dice.between(0, 20)];
    }
    const auto o = parse(text);
    if (o) {
      ASSERT_FALSE(o->host.empty() && o->seeds.empty()) << text;
      continue;
    }
    ASSERT_EQ(o.error().code, errc::invalid_argument) << text;
    ASSERT_FALSE(o.error().what.empty());
  }
}

}  // namespace
