#include "base/names.hpp"

#include <gtest/gtest.h>
#include <holdfast/holdfast.hpp>

namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using namespace holdfast::base;

errc reason(const holdfast::status& s) { return s ? errc{} : s.error().code; }

TEST(names, utf8_without_control_characters_is_allowed) {
  for (const char* const good : {"a", "order:1", "mit Leerzeichen", "zürich", "日本", "🔒",
                                 "a'b\"c", "%41{}$(rm)", "../..", "*?"}) {
    EXPECT_TRUE(check_name(good, 255)) << good;
  }
}

TEST(names, text_that_could_confuse_a_store_or_a_terminal_is_refused) {
  using namespace std::string_view_literals;
  for (const auto bad : {""sv, "a\nb"sv, "a\0b"sv, "\x1b[31m"sv, "\x7f"sv, "\xC2\x9B"sv, "\xff"sv,
                         "\xC0\xAF"sv, "\xED\xA0\x80"sv, "\xF4\x90\x80\x80"sv, "\xE2\x82"sv}) {
    EXPECT_EQ(reason(check_name(bad, 255)), errc::invalid_name);
  }
}

TEST(names, the_length_limit_counts_bytes) {
  EXPECT_TRUE(check_name(std::string(255, 'x'), 255));
  EXPECT_EQ(reason(check_name(std::string(256, 'x'), 255)), errc::invalid_name);
}

TEST(names, a_reason_that_is_too_long_is_refused_with_the_limit) {
  EXPECT_TRUE(check_reason(std::string(200, 'r')));
  const auto refused = check_reason(std::string(201, 'r'));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what, "the reason or note has 201 bytes; at most 200 are allowed");
}

TEST(names, a_lease_is_from_100_ms_to_31_days) {
  EXPECT_TRUE(check_lease(100ms));
  EXPECT_TRUE(check_lease(holdfast::max_lease));
  for (const auto bad :
       {0ms, -1ms, 99ms, std::chrono::milliseconds::max(), std::chrono::milliseconds::min()}) {
    EXPECT_EQ(reason(check_lease(bad)), errc::invalid_argument);
  }
}

TEST(names, a_lease_that_the_store_would_round_is_refused) {
  holdfast::store::capabilities whole_seconds;
  whole_seconds.lease_step_ms = 1'000;
  EXPECT_TRUE(check_lease(2s, whole_seconds));
  EXPECT_EQ(reason(check_lease(1'500ms, whole_seconds)), errc::invalid_argument);
}

TEST(names, patterns_match_as_in_a_shell) {
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("order:*", "order:1"));
  EXPECT_TRUE(matches("*:?", "order:1"));
  EXPECT_TRUE(matches("a*b*c", "axxbyyc"));
  EXPECT_FALSE(matches("a*b*c", "axxbyy"));
  EXPECT_FALSE(matches("?", ""));
  EXPECT_FALSE(matches("order", "order:1"));
  EXPECT_TRUE(matches("**", "x"));
}

TEST(names, a_bad_name_or_option_is_refused_before_any_request) {
  auto s = holdfast::open("memory:");
  const auto reason_of = [&](auto make) {
    try {
      make();
    } catch (const holdfast::error& e) {
      return e.reason();
    }
    return errc{};
  };
  EXPECT_EQ(reason_of([&] { holdfast::mutex m(s, ""); }), errc::invalid_name);
  EXPECT_EQ(reason_of([&] { holdfast::mutex m(s, "x", {.lease = 5ms}); }), errc::invalid_argument);
  EXPECT_EQ(reason_of([&] { holdfast::mutex m(s, "x", {.max_hold = 1ms}); }),
            errc::invalid_argument);
  EXPECT_EQ(reason_of([&] { holdfast::mutex m(s, "x", {.reason = "a\nb"}); }),
            errc::invalid_argument);
  EXPECT_EQ(reason_of([&] { holdfast::semaphore m(s, "x", 0); }), errc::invalid_argument);
  EXPECT_EQ(reason_of([&] { holdfast::latch m(s, "x", 0); }), errc::invalid_argument);
  EXPECT_EQ(reason_of([&] { holdfast::open("memory:", {.lease = 1ms}); }), errc::invalid_argument);
  EXPECT_EQ(s.store_operations(), 0U);
}

}  // namespace
