#include "tool/top_view.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tool/text.hpp"

namespace holdfast::tool::top_view_test {

using namespace std::chrono_literals;

namespace {

constexpr std::chrono::system_clock::time_point noon{1'700'000'000s};
constexpr screen_size usual{100, 24};

participant person(const std::string& id, std::chrono::seconds ago) {
  participant p;
  p.short_id = id;
  p.host = "web";
  p.pid = 812;
  p.since = noon - ago;
  p.expires_in = 20s;
  return p;
}

listed_name lock(const std::string& name, std::vector<participant> holders,
                 std::vector<participant> waiters = {}) {
  listed_name n;
  n.info.name = name;
  n.info.kind = "mutex";
  n.info.capacity = 1;
  n.info.holders = std::move(holders);
  n.info.waiters = std::move(waiters);
  return n;
}

snapshot three() {
  snapshot s;
  s.health.reachable = true;
  s.health.round = 1ms;
  s.names = {lock("alpha", {person("a1", 5s)}, {person("w1", 3s), person("w2", 2s)}),
             lock("beta", {person("b1", 50s)}), lock("gamma", {}, {person("w3", 9s)})};
  return s;
}

class top_table : public testing::Test {
 protected:
  top_table() : view("redis://h", {}, false) { view.update(three()); }

  top_request press(const std::string& bytes) {
    top_request last;
    for (const key& k : keys_of(bytes)) last = view.on_key(k, usual);
    return last;
  }
  std::vector<std::string> lines(screen_size size = usual) { return view.lines(size, noon); }
  std::string screen_text() {
    std::string all;
    for (const auto& line : lines()) all += line + '\n';
    return all;
  }
  /// The names in the table, from the top.
  std::string order() {
    std::string all;
    const auto now = lines();
    for (std::size_t i = 3; i + 1 < now.size(); ++i)
      if (now[i].size() > 1) all += now[i].substr(1, now[i].find(' ', 1) - 1) + ' ';
    return all;
  }
  std::string selected() {
    for (const auto& line : lines())
      if (line.starts_with('>')) return line.substr(1, line.find(' ', 1) - 1);
    return "";
  }

  top_view view;
};

}  // namespace

TEST(keys, are_read_from_the_bytes_of_a_terminal) {
  const auto keys = keys_of("a\x1b[A\x1b[5~\x1b[99;3x\r\xc3\xa9\x7f\x1b");
  std::vector<key::code> codes;
  for (const auto& k : keys) codes.push_back(k.what);
  using enum key::code;
  EXPECT_EQ(codes, (std::vector{text, up, page_up, other, enter, text, backspace, escape}));
  EXPECT_EQ(keys[5].text, "é");
}

TEST_F(top_table, shows_holder_age_lease_waiters_and_the_oldest_wait) {
  const auto now = lines();
  EXPECT_NE(now[0].find("3 names, 2 held, 3 waiting  redis://h"), std::string::npos) << now[0];
  EXPECT_TRUE(now[2].starts_with(" NAME ")) << now[2];
  for (const char* cell : {"alpha", "mutex", "web:812", " 5s ", " 20s ", " 2 ", " 3s "})
    EXPECT_NE(now[3].find(cell), std::string::npos) << cell << " in " << now[3];
}

TEST_F(top_table, letters_sort_and_r_turns_the_order_round) {
  EXPECT_EQ(order(), "alpha beta gamma ");
  press("h");
  EXPECT_EQ(order(), "beta alpha gamma ") << "the longest hold first";
  press("w");
  EXPECT_EQ(order(), "alpha gamma beta ") << "the most waiters first";
  press("o");
  EXPECT_EQ(order(), "gamma alpha beta ") << "the oldest wait first";
  press("nr");
  EXPECT_EQ(order(), "gamma beta alpha ");
}

TEST_F(top_table, a_filter_is_applied_while_it_is_typed_and_escape_takes_it_away) {
  press("/BET");
  EXPECT_EQ(order(), "beta ");
  press(
      "\x7f\x7f\x7f"
      "a1");
  EXPECT_NE(screen_text().find("no name in use mentions a1"), std::string::npos)
      << "ids are not searched";
  press("\x1b");
  EXPECT_EQ(order(), "alpha beta gamma ");
  press("/web\rq");
  EXPECT_EQ(order(), "alpha beta gamma ") << "hosts are";
}

TEST_F(top_table, t_switches_between_held_names_names_with_waiters_and_all) {
  press("t");
  EXPECT_EQ(order(), "alpha beta ");
  press("t");
  EXPECT_EQ(order(), "alpha gamma ");
  press("t");
  EXPECT_EQ(order(), "alpha beta gamma ");
}

TEST_F(top_table, the_selected_name_stays_selected_when_others_come_before_it) {
  press("\x1b[B");
  EXPECT_EQ(selected(), "beta");
  auto more = three();
  more.names.insert(more.names.begin(), lock("aaa", {}));
  view.update(more);
  EXPECT_EQ(selected(), "beta");
  view.update({});
  EXPECT_EQ(selected(), "");
  press("\x1b[B\x1b[6~u\r");
}

TEST_F(top_table, the_selected_row_is_on_the_screen_however_long_the_table_is) {
  snapshot many;
  for (int i = 100; i < 300; ++i) many.names.push_back(lock("n" + std::to_string(i), {}));
  view.update(many);
  press("\x1b[F");
  EXPECT_EQ(selected(), "n299");
  press("\x1b[5~");
  EXPECT_EQ(selected(), "n279");
  press("\x1b[H");
  EXPECT_EQ(selected(), "n100");
  EXPECT_EQ(lines().size(), usual.rows);
}

TEST_F(top_table, unlock_asks_and_only_yes_means_yes) {
  EXPECT_EQ(press("u").kind, top_request::what::nothing);
  EXPECT_NE(lines().back().find("Take alpha away from web pid 812"), std::string::npos)
      << lines().back();
  EXPECT_EQ(press("y\r").kind, top_request::what::nothing);
  EXPECT_EQ(lines().back(), "nothing was changed");
  EXPECT_EQ(press("uyes\x1b").kind, top_request::what::nothing);
  const auto yes = press("uyes\r");
  EXPECT_EQ(yes.kind, top_request::what::unlock);
  EXPECT_EQ(yes.name, "alpha");
  EXPECT_EQ(yes.owners, std::vector<std::string>{"a1"});
}

TEST_F(top_table, a_question_that_is_too_long_keeps_how_to_answer_and_how_many_hold_the_lock) {
  snapshot shared;
  std::vector<participant> holders;
  for (const char* id : {"a1", "a2", "a3"}) holders.push_back(person(id, 5s));
  shared.names = {lock(std::string(200, 'n'), holders)};
  view.update(shared);
  press("uye");
  for (const std::size_t columns : {80U, 60U}) {
    const std::string asks = lines({columns, 24}).back();
    EXPECT_TRUE(asks.ends_with("… away from 3 holders? Type yes: ye_")) << asks;
    EXPECT_EQ(columns_of(asks), columns);
  }
  EXPECT_TRUE(lines({20, 24}).back().ends_with("? Type yes: ye_")) << lines({20, 24}).back();
}

TEST_F(top_table, unlock_is_about_the_holder_that_was_shown_and_no_later_one) {
  press("u");
  auto later = three();
  later.names[0].info.holders = {person("zz", 0s)};
  view.update(later);
  EXPECT_EQ(press("yes\r").owners, std::vector<std::string>{"a1"});
}

TEST_F(top_table, a_name_without_a_holder_cannot_be_unlocked) {
  press("\x1b[F");
  EXPECT_EQ(press("uyes\r").kind, top_request::what::nothing);
}

TEST_F(top_table, nothing_moves_while_it_is_paused) {
  press("p");
  view.update({});
  EXPECT_EQ(order(), "alpha beta gamma ");
  EXPECT_NE(screen_text().find("PAUSED"), std::string::npos);
}

TEST_F(top_table, a_store_error_is_shown_and_the_last_rows_stay) {
  auto s = three();
  s.health.reachable = false;
  s.health.error = "no answer \x1b[2J";
  view.update(s);
  EXPECT_NE(screen_text().find("NOT CURRENT: \"no answer \\x1b[2J\""), std::string::npos);
  EXPECT_EQ(order(), "alpha beta gamma ");
}

TEST_F(top_table, an_answer_stays_until_the_next_key) {
  view.say("alpha: taken away");
  EXPECT_EQ(lines().back(), "alpha: taken away");
  view.update(three());
  EXPECT_EQ(lines().back(), "alpha: taken away");
  press("n");
  EXPECT_NE(lines().back(), "alpha: taken away");
}

TEST_F(top_table, enter_shows_the_queue_and_question_mark_the_keys) {
  press("\r");
  EXPECT_NE(screen_text().find("waiting, in this order"), std::string::npos) << screen_text();
  press("\r?");
  EXPECT_NE(screen_text().find("sort by name"), std::string::npos);
  EXPECT_EQ(press("q").kind, top_request::what::quit);
}

TEST_F(top_table, details_that_are_too_long_count_the_lines_left_out) {
  snapshot crowd;
  std::vector<participant> waiters;
  for (int i = 0; i < 50; ++i) waiters.push_back(person("w" + std::to_string(i), 3s));
  crowd.names = {lock("alpha", {person("a1", 5s)}, waiters)};
  view.update(crowd);
  press("\r");
  const auto all = lines({100, 100});
  const auto last = std::find_if(all.begin(), all.end(),
                                 [](const auto& line) { return line.starts_with("w49 "); });
  ASSERT_NE(last, all.end());
  const auto long_by = static_cast<std::size_t>(last - all.begin()) + 2;  // and the bottom line
  EXPECT_EQ(lines({100, long_by})[long_by - 2], *last) << "all of it fits";
  const auto cut = lines({100, 24});
  ASSERT_EQ(cut.size(), 24u);
  EXPECT_EQ(cut[22], "… " + std::to_string(long_by - 23) + " more lines; holdfast show prints all");
  EXPECT_EQ(cut[21], all[21]);
  EXPECT_EQ(lines({100, long_by - 1})[long_by - 3], "… 2 more lines; holdfast show prints all");
}

TEST_F(top_table, help_that_is_too_long_counts_the_lines_left_out) {
  press("?");
  EXPECT_EQ(lines({100, 10})[8], "… 9 more lines");
  EXPECT_EQ(lines({100, 24})[16], "enter or esc goes back");
}

TEST_F(top_table, control_c_and_control_z_work_everywhere) {
  for (const char* before : {"", "/", "u", "\r", "?"}) {
    press(before);
    EXPECT_EQ(press("\x03").kind, top_request::what::quit);
    EXPECT_EQ(press("\x1a").kind, top_request::what::suspend);
    press("\x1b\x1b");
  }
}

TEST_F(top_table, no_name_reason_or_host_reaches_the_terminal_raw) {
  const std::string evil = "x\x1b[2J\a\n\xe2\x80\xae\xd8\x9c\xf3\xa0\x80\x81\xff";
  auto s = three();
  s.names.push_back(lock(evil, {person("e", 1s)}, {person("w", 1s)}));
  s.names.back().info.kind = "mutex";
  for (auto* p : {&s.names.back().info.holders.front(), &s.names.back().info.waiters.front()}) {
    p->host = p->reason = p->program = evil;
  }
  s.names.push_back(lock(evil + "2", {}));
  s.names.back().error = evil;
  s.health.reachable = false;
  s.health.error = evil;
  view.update(s);
  view.say(evil);
  const auto check = [&] {
    for (const auto& line : lines()) {
      EXPECT_EQ(line.find_first_of("\x1b\a\n"), std::string::npos) << line;
      for (const char* hidden : {"\xe2\x80\xae", "\xd8\x9c", "\xf3\xa0\x80\x81", "\xff"})
        EXPECT_EQ(line.find(hidden), std::string::npos) << line;
    }
  };
  for (const char* keys : {"", "\x1b[F", "\r", "\ru", "\x1b?", "\x1b/\x1b\r"}) {
    press(keys);
    check();
  }
}

TEST_F(top_table, no_line_is_wider_than_the_terminal_and_none_is_missing) {
  auto s = three();
  s.names.push_back(lock(std::string(255, 'n'), {person("e", 1s)}));
  s.names.push_back(lock("日本日本日本日本日本日本日本日本日本日本", {person("e", 1s)}));
  view.update(s);
  const auto check = [&] {
    for (const std::size_t columns : {1u, 2u, 10u, 40u, 79u, 80u, 200u}) {
      for (const std::size_t rows : {1u, 3u, 5u, 24u}) {
        const auto now = lines({columns, rows});
        EXPECT_GE(now.size(), rows);
        for (const auto& line : now)
          EXPECT_LE(columns_of(line), std::max<std::size_t>(columns, 2)) << columns << ' ' << line;
      }
    }
  };
  check();
  press("/a text that no name has\r");
  check();
}

}  // namespace holdfast::tool::top_view_test
