#include "tool/duration.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>
#include <vector>

namespace holdfast::tool {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

namespace {

std::string refusal_of(std::string_view text) {
  try {
    parse_duration(text);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "accepted";
}

}  // namespace

TEST(duration, is_read_in_every_documented_form) {
  const std::vector<std::pair<std::string, nanoseconds>> forms{
      {"500ms", 500ms}, {"1.5s", 1500ms},
      {"2m", 2min},     {"1h30m", 90min},
      {"30", 30s},      {"0.25", 250ms},
      {"0", 0s},        {"2d", 48h},
      {".5", 500ms},    {"1h2m3s4ms", 1h + 2min + 3s + 4ms},
      {"0.5ms", 500us}};
  for (const auto& [text, value] : forms) EXPECT_EQ(parse_duration(text), value) << text;
}

TEST(duration, that_makes_no_sense_is_refused) {
  for (const std::string text : {"", "s", "1x", "1.2.3s", "1 s", " 1s", "1s ", "0x10", "1e9", "nan",
                                 "inf", "1s1s", "1m1h", "5s3", ".", "١s"})
    EXPECT_NE(refusal_of(text), "accepted") << text;
}

TEST(duration, refusal_names_the_nearest_valid_form) {
  EXPECT_NE(refusal_of("5sec").find("did you mean 5s?"), std::string::npos);
  EXPECT_NE(refusal_of("1h30min").find("did you mean 1h30m?"), std::string::npos);
  EXPECT_NE(refusal_of("1h30").find("did you mean 1h30s?"), std::string::npos);
  EXPECT_NE(refusal_of("-5s").find("did you mean 5s?"), std::string::npos);
  EXPECT_NE(refusal_of("soon").find("write 500ms, 1.5s, 2m, 1h30m"), std::string::npos);
}

TEST(duration, beyond_the_range_of_the_clock_is_refused) {
  EXPECT_EQ(refusal_of("100000d"), "accepted");
  EXPECT_NE(refusal_of("999999999d"), "accepted");
  EXPECT_NE(refusal_of("99999999999999999999999999999999"), "accepted");
}

TEST(duration, is_shown_in_two_units_at_most) {
  const std::vector<std::pair<nanoseconds, std::string>> shown{
      {0ns, "0ms"},  {850ms, "850ms"}, {1s, "1s"},       {4200ms, "4.2s"},
      {42s, "42s"},  {60s, "1m"},      {125s, "2m5s"},   {90min, "1h30m"},
      {76h, "3d4h"}, {-5s, "0ms"},     {24h * 31, "31d"}};
  for (const auto& [value, text] : shown) EXPECT_EQ(format_duration(value), text);
}

TEST(duration, shown_text_can_be_read_again) {
  for (const nanoseconds d :
       {nanoseconds{1ms}, nanoseconds{999ms}, nanoseconds{4200ms}, nanoseconds{59s},
        nanoseconds{61s}, nanoseconds{90min}, nanoseconds{25h}})
    EXPECT_EQ(parse_duration(format_duration(d)), d);
}

TEST(duration, a_short_time_is_shown_to_the_microsecond) {
  EXPECT_EQ(format_short_time(999us), "999us");
  EXPECT_EQ(format_short_time(3'150us), "3.1ms");
  EXPECT_EQ(format_short_time(4ms), "4ms");
  EXPECT_EQ(format_short_time(12'345us), "12ms");
  EXPECT_EQ(format_short_time(-1ns), "0us");
}

}  // namespace holdfast::tool
