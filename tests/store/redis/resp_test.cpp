#include "store/redis/resp.hpp"

#include <gtest/gtest.h>

namespace {

using holdfast::store::redis::append_command;
using holdfast::store::redis::resp_limits;
using holdfast::store::redis::resp_reader;
using holdfast::store::redis::resp_type;
using holdfast::store::redis::resp_value;
using progress = resp_reader::progress;

resp_value read(std::string_view bytes) {
  resp_reader reader;
  reader.put(bytes);
  resp_value v;
  EXPECT_EQ(reader.next(v), progress::ready) << bytes << ": " << reader.problem();
  EXPECT_TRUE(reader.at_rest());
  return v;
}

std::string problem_with(std::string_view bytes, resp_limits limits = {}) {
  resp_reader reader(limits);
  reader.put(bytes);
  resp_value v;
  EXPECT_EQ(reader.next(v), progress::broken) << bytes;
  EXPECT_EQ(reader.next(v), progress::broken) << "broken once is broken for ever";
  return reader.problem();
}

const std::string_view everything =
    "+OK\r\n-ERR no\r\n:-42\r\n$5\r\na\r\nbc\r\n$-1\r\n*-1\r\n*0\r\n"
    "*3\r\n:1\r\n*2\r\n$0\r\n\r\n+x\r\n_\r\n"
    "%2\r\n+a\r\n:1\r\n+b\r\n~1\r\n#t\r\n"
    ">3\r\n+message\r\n+c\r\n$2\r\nhi\r\n"
    "|1\r\n+ttl\r\n:3600\r\n,1.5\r\n=7\r\ntxt:abc\r\n!5\r\nERR "
    "x\r\n(12345678901234567890\r\n#f\r\n";

std::vector<resp_value> read_all(resp_reader& reader) {
  std::vector<resp_value> values;
  resp_value v;
  while (reader.next(v) == progress::ready) values.push_back(v);
  return values;
}

TEST(resp, every_type_is_read_as_itself) {
  EXPECT_EQ(read("+OK\r\n"), (resp_value{resp_type::simple, 0, "OK", {}}));
  EXPECT_EQ(read("-ERR no\r\n"), (resp_value{resp_type::error, 0, "ERR no", {}}));
  EXPECT_EQ(read(":-42\r\n").integer, -42);
  EXPECT_EQ(read("$5\r\na\r\nbc\r\n").text, "a\r\nbc");
  EXPECT_EQ(read("$-1\r\n").type, resp_type::null);
  EXPECT_EQ(read("*-1\r\n").type, resp_type::null);
  EXPECT_EQ(read("_\r\n").type, resp_type::null);
  EXPECT_EQ(read("*0\r\n").type, resp_type::array);
  EXPECT_EQ(read("#t\r\n").integer, 1);
  EXPECT_EQ(read(",1.5\r\n").text, "1.5");
  EXPECT_EQ(read("=7\r\ntxt:abc\r\n").text, "abc");
  EXPECT_TRUE(read("!5\r\nERR x\r\n").is_error());
  EXPECT_EQ(read("%1\r\n+a\r\n:1\r\n").items.size(), 2u);
  EXPECT_EQ(read(">2\r\n+a\r\n:1\r\n").type, resp_type::push);
}

TEST(resp, the_attributes_of_a_reply_are_not_the_reply) {
  EXPECT_EQ(read("|1\r\n+ttl\r\n:3600\r\n:7\r\n").integer, 7);
  EXPECT_EQ(read("*2\r\n|1\r\n+ttl\r\n:1\r\n:7\r\n:8\r\n").items.size(), 2u);
}

TEST(resp, a_stream_split_at_every_byte_gives_the_same_values) {
  resp_reader whole;
  whole.put(everything);
  const auto expected = read_all(whole);
  ASSERT_EQ(expected.size(), 15u);
  for (std::size_t at = 0; at <= everything.size(); ++at) {
    resp_reader split;
    split.put(everything.substr(0, at));
    auto values = read_all(split);
    split.put(everything.substr(at));
    for (auto& v : read_all(split)) values.push_back(v);
    ASSERT_EQ(values, expected) << "split at " << at;
    ASSERT_TRUE(split.at_rest());
  }
}

TEST(resp, a_stream_of_single_bytes_gives_the_same_values) {
  resp_reader whole;
  whole.put(everything);
  const auto expected = read_all(whole);
  resp_reader drip;
  std::vector<resp_value> values;
  for (const char c : everything) {
    drip.put(std::string_view(&c, 1));
    for (auto& v : read_all(drip)) values.push_back(v);
  }
  EXPECT_EQ(values, expected);
}

TEST(resp, a_four_gigabyte_string_is_refused_before_it_comes) {
  EXPECT_NE(problem_with("$4294967296\r\n").find("4294967296"), std::string::npos);
  EXPECT_FALSE(problem_with("*4294967296\r\n").empty());
  EXPECT_FALSE(problem_with("$9223372036854775807\r\n").empty());
}

TEST(resp, nesting_has_a_bound) {
  std::string deep;
  for (int i = 0; i < 17; ++i) deep += "*1\r\n";
  EXPECT_NE(problem_with(deep).find("deep"), std::string::npos);
}

TEST(resp, the_items_of_all_levels_have_one_bound) {
  std::string wide = "*3\r\n";
  for (int i = 0; i < 3; ++i) wide += "*3\r\n:1\r\n:2\r\n:3\r\n";
  EXPECT_FALSE(problem_with(wide, {.items = 8}).empty());
}

TEST(resp, a_line_without_an_end_has_a_bound) {
  EXPECT_FALSE(problem_with("+" + std::string(200, 'x'), {.line_bytes = 100}).empty());
}

TEST(resp, another_protocol_is_named_by_its_answer) {
  EXPECT_NE(problem_with("HTTP/1.1 400 Bad Request\r\n").find("HTTP/1.1 400"), std::string::npos);
}

TEST(resp, damaged_replies_are_refused) {
  for (const auto* const bytes :
       {":\r\n", ":1x\r\n", "$-2\r\n", "$x\r\n", "*x\r\n", "#x\r\n", "_x\r\n", "%-1\r\n", "!-1\r\n",
        "$2\r\nabc\r\n", ":99999999999999999999\r\n", "$?\r\n", "*?\r\n"}) {
    EXPECT_FALSE(problem_with(bytes).empty());
  }
}

TEST(resp, a_command_is_an_array_of_its_words) {
  std::string bytes;
  const std::string_view words[] = {"SET", "a\r\nb", ""};
  append_command(bytes, words);
  EXPECT_EQ(bytes, "*3\r\n$3\r\nSET\r\n$4\r\na\r\nb\r\n$0\r\n\r\n");
  EXPECT_EQ(read(bytes).items[1].text, "a\r\nb");
}

}  // namespace
