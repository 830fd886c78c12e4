#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>
#include <holdfast/testing.hpp>
#include <nlohmann/json.hpp>
#include <regex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using holdfast::event;
using holdfast::event_kind;
using holdfast::event_log;
using holdfast::event_log_options;
using holdfast::log_form;
using holdfast::log_level;

event lost(std::string_view name = "order:1") {
  event e;
  e.kind = event_kind::lost;
  e.name = name;
  e.lock_kind = "mutex";
  e.store = "redis://cache";
  e.fence = 10482;
  e.held = 4021ms;
  e.code = holdfast::errc::lost;
  e.detail = "the lease ended";
  return e;
}

/// A log over a clock that stands still, and what it wrote.
class logs : public testing::Test {
 protected:
  std::shared_ptr<event_log> make(event_log_options o = {}) {
    o.clock = clock_;
    o.write = [this](log_level level, std::string_view line) {
      levels_.push_back(level);
      lines_.emplace_back(line);
    };
    return std::make_shared<event_log>(std::move(o));
  }

  const std::shared_ptr<holdfast::testing::fake_clock> clock_ =
      std::make_shared<holdfast::testing::fake_clock>();
  std::vector<std::string> lines_;
  std::vector<log_level> levels_;
};

TEST_F(logs, a_line_has_all_known_facts) {
  make()->on_event(lost());
  ASSERT_EQ(lines_.size(), 1U);
  const std::regex line(
      R"(time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z level=error event=lost lock=order:1 )"
      R"(kind=mutex store=redis://cache fence=10482 held=4\.021000 )"
      R"(reason="the lock was lost" detail="the lease ended")");
  EXPECT_TRUE(std::regex_match(lines_[0], line)) << lines_[0];
  EXPECT_EQ(levels_[0], log_level::error);
}

// It may use a lock of the session that it watches.
TEST_F(logs, a_writer_may_cause_an_event) {
  std::shared_ptr<event_log> log;
  std::vector<std::string> lines;
  bool writes = false;
  log =
      std::make_shared<event_log>(event_log_options{.write =
                                                        [&](log_level, std::string_view line) {
                                                          EXPECT_FALSE(std::exchange(writes, true))
                                                              << "one line after the other";
                                                          if (lines.empty())
                                                            log->on_event(lost("inner"));
                                                          lines.emplace_back(line);
                                                          writes = false;
                                                        },
                                                    .clock = clock_});
  log->on_event(lost("outer"));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_NE(lines[0].find("lock=outer"), std::string::npos);
  EXPECT_NE(lines[1].find("lock=inner"), std::string::npos);
}

TEST_F(logs, a_writer_that_throws_loses_its_own_line_only) {
  int written = 0;
  event_log log({.write =
                     [&](log_level, std::string_view) {
                       if (++written == 1) throw std::runtime_error("full");
                     },
                 .clock = clock_});
  EXPECT_THROW(log.on_event(lost()), std::runtime_error);
  log.on_event(lost());
  EXPECT_EQ(written, 2);
}

TEST_F(logs, a_line_of_json_is_one) {
  make({.form = log_form::json})->on_event(lost());
  const auto j = nlohmann::json::parse(lines_.at(0));
  EXPECT_EQ(j["event"], "lost");
  EXPECT_EQ(j["fence"], "10482") << "it does not fit into a double";
  EXPECT_EQ(j["held"], 4.021);
}

TEST_F(logs, no_name_forges_a_line_or_a_field) {
  const std::vector<std::string> names{"a b=c",      "x\nlevel=error", "q\"uote\\", "\x1b[31mred",
                                       "n\xc2\x85l", "broken \xff",    ""};
  for (const auto& name : names) {
    make()->on_event(lost(name));
    make({.form = log_form::json})->on_event(lost(name));
  }
  for (const auto& l : lines_) {
    for (const char c : l) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << l;
    EXPECT_EQ(l.find("\xc2\x85"), l.npos);
  }
  for (std::size_t i = 0; i + 1 < names.size(); ++i) {
    EXPECT_NE(lines_[2 * i].find(" lock=\""), std::string::npos) << "in quotes: " << lines_[2 * i];
  }
  EXPECT_EQ(nlohmann::json::parse(lines_[3])["lock"], names[1]);
  EXPECT_EQ(nlohmann::json::parse(lines_[5])["lock"], names[2]);
}

// A viewer of the log would show the fields behind such a letter in another order, or on a line of
// their own.
TEST_F(logs, no_name_moves_the_text_of_a_line) {
  const std::vector<std::string> hidden{"\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x80\x8f", "\xd8\x9c",
                                        "\xe2\x80\xa8", "\xe2\x80\x8b", "\xef\xbb\xbf"};
  for (const auto& letter : hidden) {
    const std::string name = "gro" + letter + "w\xc3\xbc\xe2\x82\xac\xf0\x9f\x94\x92";
    make()->on_event(lost(name));
    EXPECT_EQ(lines_.back().find(letter), std::string::npos) << lines_.back();
    EXPECT_NE(lines_.back().find("w\xc3\xbc\xe2\x82\xac\xf0\x9f\x94\x92\" "), std::string::npos);
    make({.form = log_form::json})->on_event(lost(name));
    EXPECT_EQ(lines_.back().find(letter), std::string::npos) << lines_.back();
    EXPECT_EQ(nlohmann::json::parse(lines_.back())["lock"], name);
  }
}

TEST_F(logs, frequent_events_are_written_only_on_request) {
  event e = lost();
  for (const auto kind : {event_kind::acquired, event_kind::released, event_kind::busy,
                          event_kind::gave_up, event_kind::renewed}) {
    e.kind = kind;
    make()->on_event(e);
    EXPECT_TRUE(lines_.empty()) << to_string(kind);
    make({.routine = true})->on_event(e);
    EXPECT_EQ(lines_.size(), 1U) << to_string(kind);
    EXPECT_EQ(levels_.back(), log_level::info);
    lines_.clear();
  }
}

TEST_F(logs, a_flood_is_cut_and_the_next_line_counts_the_dropped_lines) {
  const auto log = make({.burst = 3, .per_second = 2});
  for (int i = 0; i < 10; ++i) log->on_event(lost());
  EXPECT_EQ(lines_.size(), 3U);
  clock_->advance(500ms);
  log->on_event(lost());
  ASSERT_EQ(lines_.size(), 4U);
  EXPECT_TRUE(lines_[3].ends_with(" dropped=7")) << lines_[3];
  clock_->advance(1h);
  for (int i = 0; i < 10; ++i) log->on_event(lost());
  EXPECT_EQ(lines_.size(), 7U) << "no more at once than the burst";
}

TEST_F(logs, a_flood_of_one_kind_leaves_room_for_the_others) {
  const auto log = make({.burst = 1, .per_second = 1});
  event e = lost();
  e.kind = event_kind::renew_failed;
  for (int i = 0; i < 10; ++i) log->on_event(e);
  log->on_event(lost());
  ASSERT_EQ(lines_.size(), 2U);
  EXPECT_EQ(levels_[1], log_level::error);
}

TEST_F(logs, several_observers_get_the_same_events_although_one_throws) {
  class broken final : public holdfast::observer {
   public:
    void on_event(const event&) override { throw std::string("broken"); }
  };
  const auto numbers = std::make_shared<holdfast::metrics>();
  holdfast::observers all({std::make_shared<broken>(), nullptr, make(), numbers});
  all.on_event(lost());
  EXPECT_EQ(lines_.size(), 1U);
  EXPECT_NE(numbers->text().find("holdfast_lost_total{"), std::string::npos);
}

TEST_F(logs, a_log_that_has_nowhere_to_write_to_is_refused) {
  try {
    event_log log({});
    FAIL() << "accepted";
  } catch (const holdfast::error& e) {
    EXPECT_EQ(e.reason(), holdfast::errc::invalid_argument);
  }
}

TEST_F(logs, a_store_that_is_away_is_logged_without_its_password) {
  holdfast::session_options o;
  o.observer = make();
  o.store_timeout = 100ms;
  EXPECT_THROW((void)holdfast::open("redis://app:topsecret@127.0.0.1:1", std::move(o)),
               holdfast::error);
  ASSERT_FALSE(lines_.empty());
  for (const auto& l : lines_) {
    EXPECT_EQ(l.find("topsecret"), l.npos) << l;
    EXPECT_NE(l.find("store=redis://app@127.0.0.1:1"), l.npos) << l;
  }
}

TEST_F(logs, a_session_logs_the_events_of_its_locks) {
  const auto log = make({.routine = true});
  holdfast::session_options o;
  o.observer = log;
  const auto session = holdfast::open("memory:log", std::move(o));
  holdfast::mutex m{session, "a"};
  (void)m.acquire();
  ASSERT_EQ(lines_.size(), 2U);
  EXPECT_NE(lines_[0].find("event=acquired"), std::string::npos);
  EXPECT_NE(lines_[1].find("event=released"), std::string::npos);
}

}  // namespace
