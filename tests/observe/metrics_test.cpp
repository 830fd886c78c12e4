#include <gtest/gtest.h>

#include <atomic>
#include <holdfast/holdfast.hpp>
#include <holdfast/testing.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/losses.hpp"
#include "observe/lock_series.hpp"

namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::event;
using holdfast::event_kind;
using holdfast::metrics;
using holdfast::metrics_format;

event about(event_kind kind, std::string_view name = "order:1") {
  event e;
  e.kind = kind;
  e.name = name;
  e.store = "redis://cache";
  e.lock_kind = "mutex";
  return e;
}

event ended(event_kind kind, std::chrono::nanoseconds after, errc why = {}) {
  event e = about(kind);
  e.waited = e.held = after;
  if (why != errc{}) e.code = why;
  return e;
}

/// The value of a sample, as it is written; empty if there is none.
std::string value_of(const metrics& m, const std::string& series,
                     metrics_format format = metrics_format::openmetrics) {
  const std::string text = '\n' + m.text(format);
  const auto at = text.find('\n' + series + ' ');
  if (at == text.npos) return {};
  const auto from = at + series.size() + 2;
  return text.substr(from, text.find('\n', from) - from);
}

const std::string of_orders = R"(store="redis://cache",kind="mutex",group="order")";

std::string attempts(const metrics& m, const std::string& result) {
  return value_of(m, "holdfast_acquire_total{" + of_orders + ",result=\"" + result + "\"}");
}

std::string lost(const metrics& m, const std::string& cause) {
  return value_of(m, "holdfast_lost_total{" + of_orders + ",cause=\"" + cause + "\"}");
}

std::string held(const metrics& m) { return value_of(m, "holdfast_held{" + of_orders + "}"); }

TEST(metrics, never_show_too_few_held_locks) {
  metrics m;
  for (int i = 0; i < 3; ++i) m.on_event(about(event_kind::acquired));
  std::atomic<bool> over{false};
  std::vector<std::thread> busy(2);
  for (auto& one : busy) {
    one = std::thread([&] {
      while (!over) {
        m.on_event(about(event_kind::acquired));
        m.on_event(about(event_kind::released));
      }
    });
  }
  for (int i = 0; i < 2000; ++i) {
    const auto now = held(m);
    EXPECT_GE(std::stoi(now), 3) << now;
    if (testing::Test::HasFailure()) break;
  }
  over = true;
  for (auto& one : busy) one.join();
  EXPECT_EQ(held(m), "3");
}

TEST(metrics, count_each_end_of_an_attempt_apart) {
  metrics m;
  m.on_event(ended(event_kind::acquired, 3ms));
  m.on_event(ended(event_kind::busy, 0ms, errc::busy));
  m.on_event(ended(event_kind::busy, 0ms, errc::busy));
  m.on_event(ended(event_kind::gave_up, 1s, errc::timed_out));
  m.on_event(ended(event_kind::gave_up, 1s, errc::cancelled));
  m.on_event(ended(event_kind::gave_up, 1s, errc::overloaded));
  EXPECT_EQ(attempts(m, "acquired"), "1");
  EXPECT_EQ(attempts(m, "busy"), "2");
  EXPECT_EQ(attempts(m, "timeout"), "1");
  EXPECT_EQ(attempts(m, "cancelled"), "1");
  EXPECT_EQ(attempts(m, "error"), "1");
}

TEST(metrics, count_a_wait_in_its_bucket_and_all_greater_ones) {
  metrics m;
  m.on_event(ended(event_kind::acquired, 10ms));
  m.on_event(ended(event_kind::acquired, 301s));
  const std::string wait = "holdfast_acquire_wait_seconds";
  const std::string labels = of_orders + ",result=\"acquired\"";
  const auto bucket = [&](const std::string& le) {
    return value_of(m, wait + "_bucket{" + labels + ",le=\"" + le + "\"}");
  };
  EXPECT_EQ(bucket("0.005"), "0");
  EXPECT_EQ(bucket("0.01"), "1") << "a bound belongs to its bucket";
  EXPECT_EQ(bucket("300.0"), "1");
  EXPECT_EQ(bucket("+Inf"), "2");
  EXPECT_EQ(value_of(m, wait + "_sum{" + labels + "}"), "301.01");
  EXPECT_EQ(value_of(m, wait + "_count{" + labels + "}"), "2");
}

TEST(metrics, know_how_many_leases_are_held) {
  metrics m;
  for (int i = 0; i < 6; ++i) m.on_event(about(event_kind::acquired));
  EXPECT_EQ(held(m), "6");
  m.on_event(about(event_kind::released));
  m.on_event(about(event_kind::release_failed));
  EXPECT_EQ(held(m), "4");
  event shared = about(event_kind::lost);
  shared.leases = 3;
  m.on_event(shared);
  event idle = about(event_kind::lost);
  idle.leases = 0;
  m.on_event(idle);
  event idle_still_there = about(event_kind::release_failed);
  idle_still_there.leases = 0;
  m.on_event(idle_still_there);
  EXPECT_EQ(held(m), "1");
  EXPECT_EQ(lost(m, "unknown"), "1") << "nobody held the idle one";
}

TEST(metrics, count_losses_by_their_cause_and_begin_at_zero) {
  metrics m;
  m.preregister("redis://cache", "mutex", "order");
  for (const auto cause : holdfast::losses::causes) EXPECT_EQ(lost(m, std::string(cause)), "0");
  const auto because = [&](std::string_view words) {
    event e = ended(event_kind::lost, 1s, errc::lost);
    e.detail = words;
    m.on_event(e);
  };
  namespace losses = holdfast::losses;
  for (const auto words :
       {losses::taken_away, losses::gone_at_release, losses::lease_ended, losses::ended_at_release,
        losses::ended_with_users, losses::no_majority, losses::max_hold_over, losses::unanswered,
        losses::refused, losses::not_run, losses::outcome_unknown})
    because(words);
  EXPECT_EQ(lost(m, "taken"), "2");
  EXPECT_EQ(lost(m, "expired"), "4");
  EXPECT_EQ(lost(m, "max_hold"), "1");
  EXPECT_EQ(lost(m, "connection"), "2");
  EXPECT_EQ(lost(m, "paused"), "1");
  EXPECT_EQ(lost(m, "unknown"), "1");
}

// What begins at one shows no increase.
TEST(metrics, of_a_store_begin_at_zero_with_its_first_lock) {
  metrics registered, counted;
  registered.preregister("redis://cache", "mutex", "order");
  counted.on_event(about(event_kind::acquired));
  for (const metrics* m : {&registered, &counted}) {
    for (const auto* const series :
         {"holdfast_events_total{store=\"redis://cache\",event=\"misuse\"}",
          "holdfast_renew_total{store=\"redis://cache\",result=\"error\"}"})
      EXPECT_EQ(value_of(*m, series), "0") << series;
  }
}

TEST(metrics, keep_the_limit_of_groups) {
  metrics m({.always = {"vip:7"}, .max_groups = 2});
  for (const auto* const name : {"a:1", "b/1", "c:1", "d", "a:2", "vip:7", "vip:8"}) {
    m.on_event(about(event_kind::acquired, name));
  }
  const auto of = [&](const std::string& group) {
    return value_of(m,
                    R"(holdfast_held{store="redis://cache",kind="mutex",group=")" + group + "\"}");
  };
  EXPECT_EQ(of("a"), "2");
  EXPECT_EQ(of("b"), "1");
  EXPECT_EQ(of("vip:7"), "1") << "always one of its own";
  EXPECT_EQ(of("c"), "");
  EXPECT_EQ(of("other"), "3") << "c, d, and vip";
}

// All see that there is room for one more before the first of them takes it.
TEST(metrics, keep_the_limit_of_groups_when_many_threads_add_groups) {
  constexpr int threads = 4, groups = 3;
  for (int round = 0; round < 200; ++round) {
    metrics m({.max_groups = groups});
    std::atomic<int> here{0};
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t) {
      all.emplace_back([&, t] {
        ++here;
        while (here < threads) std::this_thread::yield();
        for (int i = 0; i < groups; ++i) {
          const std::string name = "of" + std::to_string(t) + "-" + std::to_string(i);
          m.on_event(about(event_kind::acquired, name));
        }
      });
    }
    for (auto& t : all) t.join();
    const std::string text = m.text();
    std::size_t with_own = 0;
    for (auto at = text.find("holdfast_held{"); at != std::string::npos;
         at = text.find("holdfast_held{", at + 1)) {
      const auto line = text.substr(at, text.find('\n', at) - at);
      if (line.find("group=\"other\"") == std::string::npos) ++with_own;
    }
    ASSERT_LE(with_own, static_cast<std::size_t>(groups)) << text;
  }
}

TEST(metrics, group_names_as_configured) {
  metrics m({.group = [](std::string_view name) { return name.substr(name.find(':') + 1); }});
  m.on_event(about(event_kind::acquired, "1:order"));
  EXPECT_EQ(held(m), "1");
}

TEST(metrics, the_function_that_names_a_group_is_called_for_each_event) {
  std::string group = "order";
  metrics m({.group = [&](std::string_view) { return std::string_view(group); }});
  m.on_event(about(event_kind::acquired));
  group = "another";
  for (int i = 0; i < 2; ++i) m.on_event(about(event_kind::acquired));
  EXPECT_EQ(held(m), "1");
}

TEST(metrics, have_room_for_a_thousand_series_and_count_the_rest_together) {
  metrics m({.max_groups = 5'000});
  for (int i = 0; i < 3'000; ++i) {
    const std::string name = "g" + std::to_string(i);
    m.on_event(about(event_kind::acquired, name));
  }
  EXPECT_EQ(value_of(m, R"(holdfast_held{store="other",kind="other",group="other"})"), "2000");
}

TEST(metrics, show_a_series_at_zero_before_its_first_event) {
  metrics m;
  m.preregister("redis://cache", "mutex", "order");
  EXPECT_EQ(attempts(m, "acquired"), "0");
  EXPECT_EQ(held(m), "0");
}

TEST(metrics, count_renewals_and_the_rest_of_each_lease) {
  metrics m;
  event e = about(event_kind::renewed);
  e.margin = 20s;
  m.on_event(e);
  m.on_event(about(event_kind::renew_failed));
  e.kind = event_kind::held_again;
  m.on_event(e);
  e.kind = event_kind::renewed;
  e.margin = 0s;  // the first after a hand-over: nothing to learn from
  m.on_event(e);
  EXPECT_EQ(value_of(m, R"(holdfast_lease_margin_seconds_count{store="redis://cache"})"), "2");
  EXPECT_EQ(value_of(m, R"(holdfast_renew_total{store="redis://cache",result="ok"})"), "3");
  EXPECT_EQ(value_of(m, R"(holdfast_renew_total{store="redis://cache",result="error"})"), "1");
  EXPECT_EQ(value_of(m, R"(holdfast_lease_margin_seconds_sum{store="redis://cache"})"), "40");
  EXPECT_EQ(value_of(m, R"(holdfast_events_total{store="redis://cache",event="held_again"})"), "1");
}

TEST(metrics, count_pauses_and_gaps_from_zero_on) {
  metrics m;
  const std::string of_store = R"({store="redis://cache")";
  const auto pauses = [&](const std::string& what) {
    return value_of(m, "holdfast_process_pause_seconds_" + what);
  };
  const std::string gaps = "holdfast_events_total" + of_store + ",event=\"notification_gap\"}";
  m.on_event(about(event_kind::acquired));
  EXPECT_EQ(pauses("count" + of_store + "}"), "0");
  EXPECT_EQ(value_of(m, gaps), "0");

  event e = about(event_kind::paused, "");
  e.waited = 12s;
  m.on_event(e);
  m.on_event(about(event_kind::notification_gap, ""));
  EXPECT_EQ(pauses("sum" + of_store + "}"), "12");
  EXPECT_EQ(pauses("bucket" + of_store + ",le=\"10.0\"}"), "0");
  EXPECT_EQ(pauses("bucket" + of_store + ",le=\"15.0\"}"), "1");
  EXPECT_EQ(value_of(m, gaps), "1");
}

TEST(metrics, are_two_texts_of_which_one_is_for_text_files) {
  metrics m;
  m.on_event(about(event_kind::acquired));
  const std::string open = m.text();
  const std::string old = m.text(metrics_format::prometheus);
  EXPECT_TRUE(open.ends_with("\n# EOF\n"));
  EXPECT_NE(open.find("# TYPE holdfast_acquire counter\n"), open.npos);
  EXPECT_NE(open.find("# UNIT holdfast_hold_seconds seconds\n"), open.npos);
  EXPECT_EQ(old.find("# EOF"), old.npos);
  EXPECT_NE(old.find("# TYPE holdfast_acquire_total counter\n"), old.npos);
  EXPECT_NE(old.find("# TYPE holdfast_build_info gauge\n"), old.npos);
  EXPECT_NE(content_type(metrics_format::openmetrics), content_type(metrics_format::prometheus));
}

TEST(metrics, escape_the_values_of_labels) {
  metrics m;
  m.on_event(about(event_kind::acquired, "a\"b\\c\nd"));
  EXPECT_NE(m.text().find(R"(group="a\"b\\c\nd")"), std::string::npos);
}

// A group may be the beginning of a name, cut in the middle of a letter.
TEST(metrics, replace_text_that_is_not_utf_8) {
  metrics m;
  m.on_event(about(event_kind::acquired, "caf\xc3"));
  EXPECT_NE(m.text().find("group=\"caf\xef\xbf\xbd\""), std::string::npos);
}

TEST(metrics, tell_texts_of_every_length_apart) {
  const std::string text = "abcdefghijklmnopqrstuvwxyz";
  for (std::size_t n = 0; n <= text.size(); ++n) {
    const std::string one = text.substr(0, n);
    EXPECT_TRUE(holdfast::observe::same_text(one, std::string(one)));
    EXPECT_FALSE(holdfast::observe::same_text(one, one + "x"));
    for (std::size_t i = 0; i < n; ++i) {
      std::string other = one;
      other[i] = 'X';
      EXPECT_FALSE(holdfast::observe::same_text(one, other)) << n << ' ' << i;
    }
  }
}

// A thread remembers the series of its last event.
TEST(metrics, of_one_thread_and_several_observers_locks_and_stores_are_counted_apart) {
  metrics one, other;
  const auto long_name = std::string(70, 'x');
  const std::vector<std::string> names{"a:1",  "b:1",           "a:2",
                                       "a:12", long_name + "a", long_name + "b"};
  const std::vector<std::string_view> stores{"redis://cache", "redis://cachf"};
  const std::vector<std::string_view> kinds{"mutex", "latch"};
  for (int times = 0; times < 2; ++times) {
    for (const auto& name : names) {
      for (const auto store : stores) {
        for (const auto kind : kinds) {
          event e = about(event_kind::acquired, name);
          e.store = store, e.lock_kind = kind;
          one.on_event(e), one.on_event(e);
          other.on_event(e);
        }
      }
    }
  }
  for (const auto store : stores) {
    for (const auto kind : kinds) {
      const auto count = [&](const metrics& m, const std::string& group) {
        return value_of(m, "holdfast_held{store=\"" + std::string(store) + "\",kind=\"" +
                               std::string(kind) + "\",group=\"" + group + "\"}");
      };
      EXPECT_EQ(count(one, "a"), "12");
      EXPECT_EQ(count(other, "a"), "6");
      EXPECT_EQ(count(one, "b"), "4");
      EXPECT_EQ(count(one, long_name + "a"), "4");
      EXPECT_EQ(count(one, long_name + "b"), "4");
    }
  }
}

TEST(metrics, lose_no_count_of_many_threads) {
  metrics m;
  constexpr int threads = 12, each = 20'000;  // more than have counters of their own
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      const std::string name = "g" + std::to_string(t % 2) + ":x";
      for (int i = 0; i < each; ++i) {
        m.on_event(about(event_kind::acquired));
        m.on_event(about(event_kind::acquired, name));
        m.on_event(about(event_kind::released));
        if (i % 5'000 == 0) (void)m.text();
      }
    });
  }
  for (auto& t : all) t.join();
  EXPECT_EQ(attempts(m, "acquired"), std::to_string(threads * each));
  EXPECT_EQ(held(m), "0");
}

/// A session over memory that is counted.
struct counted {
  explicit counted(holdfast::testing::fault_plan plan = {}) {
    holdfast::session_options o;
    o.observer = numbers;
    const auto faulty = holdfast::testing::faulty(std::move(plan), nullptr);
    o.decorate = [faulty, timed = numbers->timer()](auto inner) {
      return timed(faulty(std::move(inner)));
    };
    session.emplace(holdfast::open("memory:", std::move(o)));
  }
  std::string of(const std::string& series) const { return value_of(*numbers, series); }

  std::shared_ptr<metrics> numbers = std::make_shared<metrics>();
  std::optional<holdfast::session> session;
};

TEST(metrics, measure_the_duration_of_store_requests) {
  counted c;
  holdfast::fair_mutex m{*c.session, "a"};
  (void)m.acquire();
  (void)c.session->names();
  const auto count = [&](const std::string& op) {
    return c.of(R"(holdfast_store_op_seconds_count{store="memory:",op=")" + op + "\"}");
  };
  EXPECT_EQ(count("acquire"), "1");
  EXPECT_EQ(count("release"), "1");
  EXPECT_EQ(count("names"), "1");
  EXPECT_EQ(count("renew"), "");
}

TEST(metrics, count_failures_of_the_store_by_their_reason) {
  holdfast::testing::fault_plan plan;
  plan.choose = [](auto, auto, auto verb) {
    return verb == holdfast::store::permits_verb::inspect ? holdfast::testing::fault::drop_request
                                                          : holdfast::testing::fault::none;
  };
  counted c(std::move(plan));
  EXPECT_THROW((void)c.session->show("a"), holdfast::error);
  EXPECT_EQ(c.of(R"(holdfast_store_errors_total{store="memory:",op="inspect",)"
                 R"(error="unavailable"})"),
            "1");
}

TEST(metrics, record_the_whole_life_of_a_lock) {
  counted c;
  holdfast::mutex m{*c.session, "job:1"};
  {
    const auto held = m.acquire();
    EXPECT_FALSE(m.try_acquire());
    EXPECT_EQ(c.of(R"(holdfast_held{store="memory:",kind="mutex",group="job"})"), "1");
  }
  EXPECT_EQ(c.of(R"(holdfast_held{store="memory:",kind="mutex",group="job"})"), "0");
  EXPECT_EQ(
      c.of(R"(holdfast_acquire_total{store="memory:",kind="mutex",group="job",result="busy"})"),
      "1");
  EXPECT_EQ(c.of(R"(holdfast_hold_seconds_count{store="memory:",kind="mutex",group="job",)"
                 R"(end="released"})"),
            "1");
}

}  // namespace
