#include "store/sql/notification_text.hpp"

#include <gtest/gtest.h>

namespace sql_test {
namespace {

using holdfast::store::notification;
using holdfast::store::notification_kind;
using holdfast::store::sql::decode;
using holdfast::store::sql::encode;

notification example() {
  notification n;
  n.what = notification_kind::granted;
  n.name = "order: 1000 ÄΩ";
  n.owner = {0x0123456789abcdefu, 0xfedcba9876543210u};
  n.fence = 18'446'744'073'709'551'615u;
  n.expires_at = -5;
  return n;
}

notification with_secret() {
  notification n = example();
  n.secret = {0x1111222233334444u, 0x5555666677778888u};
  return n;
}

std::string line_of(const notification& n) {
  std::string line = encode(n);
  EXPECT_TRUE(line.ends_with("\n"));
  line.pop_back();
  return line;
}

TEST(notification_text, an_encoded_notification_is_decoded_unchanged) {
  notification n = example();
  EXPECT_EQ(decode(line_of(n)), n);
  for (const auto what : {notification_kind::wanted, notification_kind::opened}) {
    n.what = what;
    EXPECT_EQ(decode(line_of(n)), n);
  }
  n = with_secret();
  EXPECT_EQ(decode(line_of(n)), n);
}

class notification_line : public testing::TestWithParam<notification> {};

TEST_P(notification_line, every_other_one_is_nothing) {
  const std::string good = line_of(GetParam());
  for (std::size_t i = 0; i < good.find("order"); ++i) {
    EXPECT_FALSE(decode(good.substr(0, i))) << good.substr(0, i);
    EXPECT_FALSE(decode(good.substr(i + 1))) << good.substr(i + 1);
    std::string other = good;
    other[i] = 'z';
    EXPECT_FALSE(decode(other)) << other;
    // After that point the name would begin earlier; it may contain anything.
    if (i < good.find("1844")) {
      EXPECT_FALSE(decode(good.substr(0, i) + " " + good.substr(i))) << i;
    }
  }
  EXPECT_FALSE(decode(""));
  EXPECT_FALSE(decode(std::string(100'000, ' ')));
}

INSTANTIATE_TEST_SUITE_P(all, notification_line, testing::Values(example(), with_secret()));

TEST(notification_text, no_secret_is_not_written_as_one) {
  std::string line = line_of(with_secret());
  const std::string none(32, '0');
  line.replace(line.find("1111"), none.size(), none);
  EXPECT_FALSE(decode(line));
}

TEST(notification_text, a_departure_is_never_taken_from_the_wire) {
  notification n = example();
  n.what = notification_kind::departed;
  EXPECT_EQ(encode(n), "");
  std::string forged = line_of(example());
  forged.replace(forged.find("granted"), 7, "departed");
  EXPECT_FALSE(decode(forged));
}

TEST(notification_text, names_that_would_break_the_line_are_not_sent) {
  notification n = example();
  for (const std::string& name :
       {std::string{}, std::string{"a\nb"}, std::string{"a\0b", 3}, std::string(4'000, 'x')}) {
    n.name = name;
    EXPECT_EQ(encode(n), "");
  }
}

}  // namespace
}  // namespace sql_test
