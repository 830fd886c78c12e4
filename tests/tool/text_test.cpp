#include "tool/text.hpp"

#include <gtest/gtest.h>

#include "tool/nearest.hpp"
#include "tool/table.hpp"

namespace holdfast::tool {

using namespace std::chrono_literals;

TEST(text, ordinary_names_are_printed_unchanged) {
  for (const std::string name : {"deploy", "shop:order:1", "größe", "日本", "a b", "it's \"x\""})
    EXPECT_EQ(printable(name), name);
}

TEST(text, text_that_could_move_the_cursor_is_escaped_and_quoted) {
  EXPECT_EQ(printable("a\x1b[2Jb"), "\"a\\x1b[2Jb\"");
  EXPECT_EQ(printable("a\nb\t"), "\"a\\nb\\t\"");
  EXPECT_EQ(printable("a\x7f"), "\"a\\x7f\"");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\"\\u{9b}31m\"");                                     // C1: a one-character escape
  EXPECT_EQ(printable("x\xe2\x80\xaey"), "\"x\\u{202e}y\"");       // right-to-left override
  EXPECT_EQ(printable("x\xd8\x9cy"), "\"x\\u{61c}y\"");            // Arabic letter mark
  EXPECT_EQ(printable("x\xf3\xa0\x81\xa1y"), "\"x\\u{e0061}y\"");  // a tag, which hides
  EXPECT_EQ(printable("x\xc2\xady"), "\"x\\u{ad}y\"");             // soft hyphen
  EXPECT_EQ(printable("x\xe2\x80\x8by"), "\"x\\u{200b}y\"");       // a blank without a width
  EXPECT_EQ(printable(std::string("a\0b", 3)), "\"a\\x00b\"");
}

TEST(text, several_lines_become_one) {
  EXPECT_EQ(one_line("refused\n\tIs the  server\n\n running? \n"),
            "refused Is the  server running?");
  EXPECT_EQ(one_line("one line"), "one line");
  EXPECT_EQ(one_line(" \n"), "");
  EXPECT_EQ(one_line(""), "");
}

TEST(text, broken_utf8_is_escaped_byte_by_byte) {
  EXPECT_EQ(printable("\xff"), "\"\\xff\"");
  EXPECT_EQ(printable("\xc0\xaf"), "\"\\xc0\\xaf\"");           // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\"\\xed\\xa0\\x80\"");  // surrogate
  EXPECT_EQ(printable("\xe2\x82"), "\"\\xe2\\x82\"");           // cut off
  EXPECT_EQ(printable("\xf5\x80\x80\x80"), "\"\\xf5\\x80\\x80\\x80\"");
}

TEST(text, times_are_written_as_rfc3339_with_milliseconds) {
  const std::chrono::system_clock::time_point t{1'700'000'000'250ms};
  EXPECT_EQ(rfc3339(t), "2023-11-14T22:13:20.250Z");
  EXPECT_EQ(rfc3339(std::chrono::system_clock::time_point{-1ms}), "1969-12-31T23:59:59.999Z");
}

TEST(text, places_in_a_queue_are_counted_in_words) {
  const std::vector<std::pair<std::size_t, std::string>> places{
      {1, "1st"},   {2, "2nd"},   {3, "3rd"},   {4, "4th"},     {10, "10th"},  {11, "11th"},
      {12, "12th"}, {13, "13th"}, {21, "21st"}, {102, "102nd"}, {111, "111th"}};
  for (const auto& [n, word] : places) EXPECT_EQ(ordinal(n), word);
}

TEST(text, is_cut_between_characters_never_inside_one) {
  EXPECT_EQ(shortened("größe", 5), "größe");
  EXPECT_EQ(shortened("größe", 4), "grö…");
  EXPECT_EQ(shortened("abc", 1), "…");
}

TEST(text, wide_letters_take_two_columns_and_marks_on_letters_no_column) {
  EXPECT_EQ(columns_of("größe"), 5u);
  EXPECT_EQ(columns_of("日本"), 4u);
  EXPECT_EQ(columns_of("e\xcc\x81"), 1u);  // e, and the accent as a letter of its own
  EXPECT_EQ(shortened("日本語", 5), "日本…");
  EXPECT_EQ(shortened("日本語", 4), "日…");
  EXPECT_EQ(padded("日本", 5), "日本 ");
  EXPECT_EQ(padded("größe", 3), "gr…");
  EXPECT_EQ(padded("x", 0), "");
}

TEST(text, seconds_have_three_digits) { EXPECT_EQ(seconds_of(1'234'567us), 1.235); }

TEST(table, columns_line_up_also_under_wide_letters) {
  table t{{"NAME", "N"}};
  t.add({"größe", "1"});
  t.add({"a", "22"});
  EXPECT_EQ(t.text(false), "NAME   N\ngröße  1\na      22\n");
}

TEST(table, empty_cells_leave_no_trailing_blanks) {
  table t{{"A", "B", "C"}};
  t.add({"1", "", ""});
  EXPECT_EQ(t.text(false), "A  B  C\n1\n");
}

TEST(nearest_word, is_found_over_typing_errors_and_beginnings) {
  const std::vector<std::string> words{"--wait", "--ttl", "--min-hold", "--max-run"};
  EXPECT_EQ(nearest("--wiat", words), "--wait");
  EXPECT_EQ(nearest("--tttl", words), "--ttl");
  EXPECT_EQ(nearest("--min", words), "--min-hold");
  EXPECT_EQ(nearest("--minhold", words), "--min-hold");
  EXPECT_EQ(nearest("--bogus", words), "");
  EXPECT_EQ(nearest("-q", std::vector<std::string>{"-h", "-n"}), "");
}

}  // namespace holdfast::tool
