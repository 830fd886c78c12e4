#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <holdfast/async.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/rate_limiter.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/session.hpp>
#include <holdfast/store/forwarding_store.hpp>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include "harness/eventually.hpp"
#include "harness/seed.hpp"
#include "harness/tcp.hpp"
#include "tool/failure.hpp"
#include "tool/serve/api_json.hpp"
#include "tool/serve/dashboard.hpp"
#include "tool/serve/host_check.hpp"
#include "tool/serve/http_server.hpp"
#include "tool/serve/page.hpp"
#include "tool/serve/shared_answer.hpp"
#include "tool/serve/url_query.hpp"
#include "tool/survey/board.hpp"
#include "tool/survey/history.hpp"
#include "tool/survey/pace.hpp"
#include "tool/survey/scanner.hpp"

// The parts of holdfast serve, each by itself.
namespace tool_test {

namespace {

using namespace std::chrono_literals;
using holdfast::tool::board;
using holdfast::tool::hold_change;
using holdfast::tool::http_answer;
using holdfast::tool::http_reply;
using holdfast::tool::http_request;
using holdfast::tool::http_server;
using holdfast::tool::listed_name;
using holdfast::tool::pace;
using wall = std::chrono::system_clock;
using std::chrono::nanoseconds;

const wall::time_point noon{std::chrono::hours(24 * 365 * 50 + 12)};

holdfast::participant person(const std::string& id, std::uint64_t fence, wall::time_point since) {
  holdfast::participant p;
  p.short_id = id;
  p.host = "web-1";
  p.pid = 812;
  p.fence = fence;
  p.since = since;
  p.expires_in = 30s;
  return p;
}

listed_name held(const std::string& name, const std::string& by, std::uint64_t fence) {
  listed_name n;
  n.info.name = name;
  n.info.kind = "mutex";
  n.info.capacity = 1;
  n.info.holders = {person(by, fence, noon)};
  return n;
}

listed_name not_in_use(const std::string& name) {
  listed_name n;
  n.info.name = name;
  return n;
}

/// A browser: its rows after the pieces that it took.
struct browser {
  std::map<std::string, std::string> rows{};  ///< name: owner
  board::cursor at{};
  int forgot = 0;

  /// False if there was nothing.
  bool take(board& from) {
    const auto piece = from.since(at);
    if (!piece) return false;
    std::string_view text = *piece;
    while (!text.empty()) {
      const auto end = text.find("\n\n");
      take_event(text.substr(0, end));
      text.remove_prefix(end + 2);
    }
    return true;
  }

 private:
  void take_event(std::string_view event) {
    const auto data = event.find("\ndata: ");
    const auto said = nlohmann::json::parse(event.substr(data + 7));
    if (event.starts_with("event: forget")) {
      rows.clear();
      ++forgot;
      return;
    }
    for (const auto& l : said["locks"]) rows[l["lock"]] = l["holders"][0]["owner"];
    for (const auto& name : said["gone"]) rows.erase(name);
  }
};

}  // namespace

TEST(serve_pace, the_time_spent_stays_below_the_share_for_any_duration_of_a_query) {
  std::mt19937_64 random(harness::seed());
  for (const double share : {0.01, 0.05, 0.5}) {
    const holdfast::boot_time began{1h};
    holdfast::boot_time now = began;
    pace p{share, now};
    nanoseconds spent{};
    while (now - began < 10min) {
      if (!p.may_ask(now)) now = p.rested_at();
      const nanoseconds one{random() % 5'000'000};
      p.spent(now, now + one);
      now += one;
      spent += one;
    }
    now = std::max(now, p.rested_at());
    EXPECT_LE(spent, (now - began) * share + 1us) << share;
    EXPECT_GE(spent, (now - began) * share * 0.9) << "it may be asked more often";
    EXPECT_LE(p.used(now), share * 1.2);
  }
}

TEST(serve_pace, a_long_question_is_followed_by_a_long_rest) {
  const holdfast::boot_time began{1h};
  pace p{0.01, began};
  p.spent(began, began + 2s);
  EXPECT_FALSE(p.may_ask(began + 100s));
  EXPECT_TRUE(p.may_ask(began + 200s));
  EXPECT_EQ(p.rested_at(), began + 200s);
}

// Ten thousand names on Redis: 20 ms a list, 40 us a query.
TEST(serve_pace, a_long_list_comes_every_few_seconds_and_no_query_waits_for_its_rest) {
  const holdfast::boot_time began{1h};
  holdfast::boot_time now = began, listed = began;
  pace p{0.01, now};
  nanoseconds queries{}, lists{}, longest{};
  while (now - began < 10min) {
    if (now >= p.list_at()) {
      longest = std::max<nanoseconds>(longest, now - std::exchange(listed, now));
      p.spent_on_list(now, now + 20ms);
      now += 20ms;
      lists += 20ms;
      EXPECT_LE(p.rested_at(), now + pace::window) << "a name of this list can be queried";
    }
    if (!p.may_ask(now)) now = std::min(p.rested_at(), p.list_at());
    if (!p.may_ask(now)) continue;
    p.spent(now, now + 40us);
    now += 40us;
    queries += 40us;
  }
  EXPECT_LE(longest, 3100ms);
  EXPECT_LE(lists + queries, (now - began + pace::window) * 0.01 + 20ms) << "the last list is owed";
  EXPECT_GE(queries, (now - began) * 0.01 / 3 * 0.9);
  EXPECT_LE(p.used(now), 0.01 * 1.2);
}

TEST(serve_pace, short_lists_leave_the_share_to_the_queries) {
  const holdfast::boot_time began{1h};
  pace p{0.01, began};
  p.spent_on_list(began, began + 50us);
  EXPECT_EQ(p.list_at(), began + 50us + pace::between_lists);
  p.spent(began + 50us, began + 1050us);
  EXPECT_LE(p.rested_at(), began + 106ms) << "1 ms costs 100 ms at 1 %, and the lists a part of it";
}

TEST(serve_pace, lists_keep_to_the_first_share_while_queries_may_use_more) {
  const holdfast::boot_time began{1h};
  pace p{0.01, began};
  p.set_share(0.25);
  p.spent_on_list(began, began + 20ms);
  EXPECT_EQ(p.list_at(), began + 3020ms);
  p.spent(began + 20ms, began + 120ms);
  EXPECT_LE(p.rested_at(), began + 20ms + 100ms * 4.2);
  p.list_now();
  EXPECT_LE(p.list_at(), began);
}

// Each viewer that comes back makes the scanner list the names, and so does a store that is back.
TEST(serve_pace, early_lists_are_owed_too) {
  const holdfast::boot_time began{1h};
  holdfast::boot_time now = began;
  pace p{0.01, now};
  nanoseconds lists{};
  while (now - began < 10min) {
    p.list_now();
    if (!p.may_ask(now)) now = p.rested_at();
    p.spent_on_list(now, now + 20ms);
    now += 20ms;
    lists += 20ms;
  }
  EXPECT_LE(lists, (now - began) * 0.01 + 20ms) << "the last list is owed";
}

TEST(serve_board, a_viewer_gets_each_change_once_and_is_owed_no_more_than_the_rows) {
  board b{0, "memory:"};
  browser early, late;
  EXPECT_TRUE(b.put(held("a", "one", 1), noon));
  EXPECT_TRUE(early.take(b));
  EXPECT_FALSE(early.take(b));
  // Many changes come, and a viewer that was away sees only their result.
  for (std::uint64_t i = 2; i < 1000; ++i) b.put(held("a", "id" + std::to_string(i), i), noon);
  b.put(held("b", "two", 2000), noon);
  b.put(not_in_use("b"), noon);
  b.put(held("c", "three", 3000), noon);
  const std::map<std::string, std::string> now{{"a", "id999"}, {"c", "three"}};
  EXPECT_TRUE(early.take(b));
  EXPECT_FALSE(early.take(b));
  EXPECT_EQ(early.rows, now);
  EXPECT_TRUE(late.take(b));
  EXPECT_EQ(late.rows, now);
  EXPECT_EQ(late.forgot, 0);
}

TEST(serve_board, a_query_with_the_same_result_is_no_change_but_a_renewal_is) {
  board b{0, "memory:"};
  auto n = held("a", "one", 1);
  EXPECT_TRUE(b.put(n, noon));
  n.info.holders.front().expires_in = 20s;
  EXPECT_FALSE(b.put(n, noon + 10s));
  n.info.holders.front().expires_in = 30s;
  EXPECT_TRUE(b.put(n, noon + 10s));
  EXPECT_EQ(b.find("a", noon + 15s)->what.info.holders.front().expires_in, 25s);
  EXPECT_EQ(b.find("a", noon + 100s)->what.info.holders.front().expires_in, 0s);
  EXPECT_FALSE(b.put(not_in_use("unknown"), noon));
  EXPECT_FALSE(b.find("unknown", noon));
}

TEST(serve_board, a_holder_or_waiter_that_died_is_a_change) {
  board b{0, "memory:"};
  auto n = held("a", "one", 1);
  n.info.waiters.resize(1);
  EXPECT_TRUE(b.put(n, noon));
  n.info.holders.front().died = true;
  EXPECT_TRUE(b.put(n, noon));
  EXPECT_FALSE(b.put(n, noon));
  n.info.waiters.front().died = true;
  EXPECT_TRUE(b.put(n, noon));
}

TEST(serve_board, the_age_of_the_board_is_that_of_its_oldest_query) {
  board b{0, "memory:"};
  EXPECT_EQ(b.take(noon).as_of, wall::time_point{}) << "nothing is known";
  b.listed(noon);
  EXPECT_EQ(b.take(noon + 5s).as_of, noon);
  b.listed(noon + 4s);
  b.put(held("a", "one", 1), noon + 1s);
  b.put(held("b", "one", 1), noon + 3s);
  EXPECT_EQ(b.take(noon + 5s).as_of, noon + 1s);
  b.put(held("a", "one", 1), noon + 4s);
  EXPECT_EQ(b.take(noon + 5s).as_of, noon + 3s) << "it is the same, and was looked at again";
  EXPECT_EQ(b.find("a", noon + 5s)->at, noon + 4s);
}

TEST(serve_board, the_board_is_no_newer_than_the_list_of_the_names) {
  board b{0, "memory:"};
  b.listed(noon);
  b.put(held("a", "one", 1), noon + 3s);
  EXPECT_EQ(b.take(noon + 5s).as_of, noon) << "a name that came since then is not here";
  b.listed(noon + 4s);
  EXPECT_EQ(b.take(noon + 5s).as_of, noon + 3s);
}

TEST(serve_board, ten_thousand_rows_come_in_pieces) {
  board b{0, "memory:"};
  for (int i = 0; i < 10'000; ++i) b.put(held("n" + std::to_string(i), "one", 1), noon);
  browser v;
  int pieces = 0;
  while (v.take(b)) ++pieces;
  EXPECT_EQ(v.rows.size(), 10'000u);
  EXPECT_EQ(pieces, 10'000 / static_cast<int>(board::max_rows_a_piece));
}

TEST(serve_board, a_viewer_that_was_away_for_too_many_ends_begins_anew) {
  board b{0, "memory:"};
  b.put(held("stays", "one", 1), noon);
  b.put(held("goes", "one", 1), noon);
  browser v;
  while (v.take(b)) {
  }
  b.put(not_in_use("goes"), noon);
  for (std::size_t i = 0; i <= board::max_gone; ++i) {
    b.put(held("n" + std::to_string(i), "one", 1), noon);
    b.put(not_in_use("n" + std::to_string(i)), noon);
  }
  while (v.take(b)) {
  }
  EXPECT_EQ(v.forgot, 1);
  EXPECT_EQ(v.rows, (std::map<std::string, std::string>{{"stays", "one"}}));
}

TEST(serve_board, a_viewer_that_comes_after_many_ends_gets_all_rows_once) {
  board b{0, "memory:"};
  std::map<std::string, std::string> all;
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "stays" + std::to_string(i);
    b.put(held(name, "one", 1), noon);
    all[name] = "one";
  }
  for (std::size_t i = 0; i <= board::max_gone; ++i) {
    b.put(held("n" + std::to_string(i), "one", 1), noon);
    b.put(not_in_use("n" + std::to_string(i)), noon);
  }
  browser v;
  int pieces = 0;
  while (v.take(b)) ASSERT_LT(++pieces, 100);
  EXPECT_EQ(v.forgot, 0);
  EXPECT_EQ(v.rows, all);
}

// Whatever bytes a store contains: an event is one line of JSON, and the text comes back as text.
TEST(serve_board, no_bytes_of_a_name_or_a_reason_leave_their_quotes) {
  std::mt19937_64 random(harness::seed());
  const std::vector<std::string> evil{"</script><img src=x onerror=alert(1)>",
                                      "\x1b[31mred\x1b[0m",
                                      "\xe2\x80\xae"
                                      "evil",
                                      "a\n\ndata: {\"store\":0}\n\n",
                                      "\r\revent: hello\r",
                                      "\"}],\"gone\":[\"x",
                                      std::string(3, '\0'),
                                      "\xff\xfe",
                                      "\xe2\x80\xa8"};
  for (std::size_t i = 0; i < 1000; ++i) {
    std::string name;
    if (i < evil.size()) name = evil[i];
    while (i >= evil.size() && name.size() < 200) name += static_cast<char>(random());
    board b{0, "memory:"};
    auto n = held(name, "one", 1);
    n.info.holders.front().reason = name;
    b.put(n, noon);
    board::cursor from_the_start;
    const auto piece = b.since(from_the_start);
    const std::string& text = *piece;
    ASSERT_EQ(text.find("event: rows\ndata: {"), 0u);
    ASSERT_EQ(text.find('\n', 20), text.size() - 2) << "more than one line";
    ASSERT_EQ(text.find('\r'), text.npos);
    const auto said = nlohmann::json::parse(text.substr(18));
    ASSERT_EQ(said["locks"].size(), 1u);
    ASSERT_TRUE(said["gone"].empty());
    ASSERT_EQ(said["locks"][0]["lock"], said["locks"][0]["holders"][0]["reason"]);
  }
}

// As curl prints it on a terminal.
TEST(serve_api, its_answers_move_nothing_on_a_terminal) {
  const std::string name =
      "a\xc2\x9b"
      "31m\xe2\x80\xae";
  const std::vector<std::pair<std::string, std::uint64_t>> taken{{name, 1}};
  const std::string text = holdfast::tool::busiest_json("memory:", taken);
  EXPECT_EQ(text.find("\xc2\x9b"), text.npos) << text;
  EXPECT_EQ(text.find("\xe2\x80\xae"), text.npos) << text;
  EXPECT_EQ(nlohmann::json::parse(text)["locks"][0]["lock"], name);
}

TEST(serve_history, hand_overs_have_their_waits_and_holds) {
  holdfast::tool::history h;
  auto first = held("l", "one", 1).info;
  first.waiters = {person("two", 0, noon + 5s)};
  auto then = held("l", "two", 2).info;
  then.holders.front().since = noon + 12s;
  h.note({}, first, noon + 6s);
  h.note(first, then, noon + 13s);
  const auto seen = h.about("l");
  ASSERT_EQ(seen.changes.size(), 3u);
  EXPECT_EQ(seen.changes[0].happened, hold_change::what::taken);
  EXPECT_EQ(seen.changes[0].who.short_id, "two");
  EXPECT_EQ(seen.changes[0].length, 7s);  // of waiting
  EXPECT_EQ(seen.changes[1].happened, hold_change::what::given_up);
  EXPECT_EQ(seen.changes[1].length, 12s);  // of holding: to when the next one began
  EXPECT_EQ(seen.held.count(), 1u);
  EXPECT_EQ(seen.waited.count(), 1u);
  EXPECT_DOUBLE_EQ(seen.held.seconds(), 12);
  EXPECT_TRUE(h.about("other").changes.empty());
}

TEST(serve_history, it_is_bounded_and_counts_the_busiest) {
  holdfast::tool::history h;
  for (std::uint64_t i = 1; i <= holdfast::tool::history::max_kept; ++i)
    h.note({}, held(i % 3 == 0 ? "rare" : "often", "one", i).info, noon);
  h.note({}, held("last", "one", 1).info, noon);
  const auto busiest = h.busiest(2);
  ASSERT_EQ(busiest.size(), 2u);
  EXPECT_EQ(busiest[0].first, "often");
  EXPECT_EQ(busiest[1].first, "rare");
  EXPECT_EQ(busiest[0].second + busiest[1].second, holdfast::tool::history::max_kept - 1);
  EXPECT_EQ(h.about("often").changes.size(), holdfast::tool::history::max_shown);
}

TEST(serve_durations, each_length_is_in_the_first_bucket_that_is_not_less) {
  holdfast::tool::durations d;
  for (const auto length : {0ms, 10ms, 11ms, 3600s + 0ms, 3601s + 0ms}) d.add(length);
  EXPECT_EQ(d.buckets().front(), 2u);
  EXPECT_EQ(d.buckets()[1], 1u);
  EXPECT_EQ(d.buckets()[d.bounds.size() - 1], 1u);
  EXPECT_EQ(d.buckets().back(), 1u);
}

TEST(serve_host, addresses_and_this_machine_s_names_are_its_own) {
  using holdfast::tool::is_own_host;
  for (const char* own : {"127.0.0.1", "localhost:8080", "LOCALHOST", "[::1]:80", "10.1.2.3:80",
                          "locks.example", "Locks.Example:7440"})
    EXPECT_TRUE(is_own_host(own, {"", "locks.example"})) << own;
  for (const char* other : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example",
                            "[evil]", "", "evil.example:80", "::1.evil", "[::1].evil.example",
                            "[::1]evil", "[::1", "127.0.0.1:80.evil.example", "localhost:evil"})
    EXPECT_FALSE(is_own_host(other, {"", "locks.example"})) << other;
  EXPECT_FALSE(is_own_host("", {""}));
  EXPECT_FALSE(is_own_host(std::string("127.0.0.1\0.evil", 15), {}));
  for (const char* here : {":80", "127.0.0.1:80", "127.8.8.8:1", "localhost:1", "[::1]:80"})
    EXPECT_TRUE(holdfast::tool::is_loopback(here)) << here;
  EXPECT_EQ(holdfast::tool::port_of("[::1]:80"), 80);
  for (const char* none : {"::1:80", "[::1:80", "::1]:80", "[127.0.0.1]]:80", "[a]b:80"})
    EXPECT_FALSE(holdfast::tool::port_of(none)) << none;
  for (const char* open : {"0.0.0.0:80", "[::]:80", "127.evil.example:80", "10.0.0.1:80"})
    EXPECT_FALSE(holdfast::tool::is_loopback(open)) << open;
}

TEST(serve_host, a_page_of_another_site_is_recognised_by_its_headers) {
  using holdfast::tool::is_foreign;
  for (const char* ours : {"same-origin", "none"})
    EXPECT_FALSE(is_foreign(ours, "https://behind.a.proxy", "127.0.0.1:7440")) << ours;
  for (const char* others : {"cross-site", "same-site", "whatever"})
    EXPECT_TRUE(is_foreign(others, "", "localhost")) << others;
  EXPECT_FALSE(is_foreign("", "", "localhost")) << "no browser";
  EXPECT_FALSE(is_foreign("", "http://Web-3:7440", "web-3:7440"));
  EXPECT_FALSE(is_foreign("", "https://web-3", "web-3")) << "a proxy speaks TLS";
  for (const char* origin : {"http://evil.example", "http://web-3:80", "null", "web-3:7440",
                             "http://web-3:7440.evil.example", "ftp://web-3:7440"})
    EXPECT_TRUE(is_foreign("", origin, "web-3:7440")) << origin;
}

TEST(serve_query, values_are_decoded_and_bad_ones_are_left_out) {
  using holdfast::tool::query_value;
  EXPECT_EQ(query_value("a=1&lock=x%20y%2fz%C3%A4+w&b", "lock"), "x y/z\xc3\xa4 w");
  EXPECT_EQ(query_value("lock=", "lock"), "");
  for (const char* none : {"", "locks=1", "lock", "lock=%", "lock=%2", "lock=%zz", "lock=%-1"})
    EXPECT_FALSE(query_value(none, "lock")) << none;
  EXPECT_EQ(holdfast::tool::seconds_in("1.5"), 1.5);
  for (const char* none : {"", "-1", "nan", "1s", " 1"})
    EXPECT_FALSE(holdfast::tool::seconds_in(none)) << none;
}

TEST(serve_page, nothing_in_it_comes_from_elsewhere_or_makes_markup_of_text) {
  std::set<std::string_view> paths;
  for (const auto& f : holdfast::tool::page_files()) {
    paths.insert(f.path);
    for (const char* banned : {"innerHTML", "outerHTML", "insertAdjacent", "document.write",
                               "eval(", "https:", " style=", "<script>", " onclick", "javascript:"})
      EXPECT_EQ(f.text.find(banned), f.text.npos) << f.path << " has " << banned;
  }
  EXPECT_TRUE(paths.contains("/"));
  EXPECT_TRUE(paths.contains("/main.js"));
}

namespace {

/// A document that is made again and again.
class copied {
 public:
  using document = holdfast::tool::shared_answer::document;
  holdfast::boot_time now{1h};
  nanoseconds takes{};  ///< how long it takes to make one
  int made = 0;
  std::uint64_t version = 1;
  std::vector<std::string> told{};

  std::optional<nanoseconds> ask(bool good = true) {
    return of_.ask([=](const document&) { return good; },
                   [this](const document& d) { told.push_back(*d.text); });
  }
  void tell() { of_.tell(); }
  /// For `length` there is a request each 5 ms, perhaps after a change.
  void crowd(nanoseconds length, bool changes) {
    const auto end = now + length;
    std::optional<holdfast::boot_time> due;
    std::vector<std::uint64_t> asked;
    for (; now < end || due; now += 5ms) {
      if (due && *due <= now) tell(), due.reset();
      if (now >= end) continue;
      if (changes) ++version;
      asked.push_back(version);
      const auto later = ask();
      ASSERT_FALSE(due && later) << "one call for all that wait";
      if (later) due = now + *later;
    }
    ASSERT_EQ(told.size(), asked.size());
    for (std::size_t i = 0; i < asked.size(); ++i)
      ASSERT_GE(std::stoull(told[i].substr(1)), asked[i]) << "it lacks a change";
  }

 private:
  holdfast::tool::shared_answer of_{
      [this] { return version; },
      [this] {
        ++made;
        now += takes;
        return document{std::make_shared<std::string>("v" + std::to_string(version)), noon};
      },
      [this] { return now; }};
};

}  // namespace

TEST(serve_shared_answer, is_made_once_a_second_for_all_while_nothing_changes) {
  copied c;
  c.crowd(10s, false);
  EXPECT_EQ(c.made, 10);
  EXPECT_EQ(c.told.size(), 2000u);
}

TEST(serve_shared_answer, is_made_five_times_a_second_at_most_and_no_viewer_misses_a_change) {
  copied c;
  c.crowd(10s, true);
  EXPECT_LE(c.made, 51);
}

TEST(serve_shared_answer, that_takes_long_is_made_in_a_fifth_of_the_time) {
  for (const bool changes : {false, true}) {
    copied c;
    c.takes = 2s;
    const auto began = c.now;
    c.crowd(100s, changes);
    EXPECT_LE(c.made * c.takes, (c.now - began) / 5 + c.takes);
    EXPECT_GE(c.made, 9);
  }
}

TEST(serve_shared_answer, that_is_too_old_for_a_viewer_is_made_anew) {
  copied c;
  EXPECT_FALSE(c.ask());
  c.now += 500ms;
  EXPECT_FALSE(c.ask(false));
  EXPECT_EQ(c.made, 2);
  c.now += 50ms;
  EXPECT_EQ(c.ask(false), 150ms);
  EXPECT_EQ(c.told.size(), 2u);
  c.tell();
  EXPECT_EQ(c.told.size(), 3u) << "whatever it is, it is the newest there is";
  EXPECT_EQ(c.made, 3);
}

namespace {

/// A server's answer to one request.
std::string ask(int port, const std::string& request) {
  const harness::tcp_client client(port);
  client.say(request);
  return const_cast<harness::tcp_client&>(client).hear_all();
}

void echo(const http_request& r, const http_reply& reply) {
  http_answer a;
  a.body = r.method + " " + r.path + " ? " + r.query + " " + r.body + "\n";
  reply(std::move(a));
}

/// An endless stream.
class flood : public holdfast::tool::http_stream {
 public:
  explicit flood(std::atomic<int>& alive) : alive_(alive) { ++alive_; }
  ~flood() override { --alive_; }
  std::shared_ptr<const std::string> next() override { return piece_; }

 private:
  std::atomic<int>& alive_;
  const std::shared_ptr<const std::string> piece_ =
      std::make_shared<const std::string>(std::string(1 << 16, 'x'));
};

/// Sends nothing.
class silence : public holdfast::tool::http_stream {
 public:
  explicit silence(std::atomic<int>& alive) : alive_(alive) { ++alive_; }
  ~silence() override { --alive_; }
  std::shared_ptr<const std::string> next() override { return nullptr; }

 private:
  std::atomic<int>& alive_;
};

}  // namespace

TEST(serve_http, requests_are_taken_apart_and_bad_ones_refused) {
  http_server s{{"--listen", ":0"}, {}, echo};
  s.start();
  const std::string host = " HTTP/1.1\r\nHost: localhost\r\n";
  const auto answer = ask(s.port(), "POST /a/b?c=d&e" + host + "Content-Length: 2\r\n\r\nhi");
  EXPECT_TRUE(answer.ends_with("\r\n\r\nPOST /a/b ? c=d&e hi\n")) << answer;
  for (const char* header :
       {"Content-Security-Policy: default-src 'none';", "X-Content-Type-Options: nosniff",
        "Cache-Control: no-store", "Cross-Origin-Resource-Policy: same-origin"})
    EXPECT_NE(answer.find(header), answer.npos) << header;
  EXPECT_EQ(ask(s.port(), "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").find("421"), 9u);
  EXPECT_EQ(ask(s.port(), "GET /" + host + "Host: localhost\r\n\r\n").find("421"), 9u);
  EXPECT_EQ(ask(s.port(), "what is this\r\n\r\n").find("400"), 9u);
  EXPECT_EQ(ask(s.port(), "GET /" + host + "Content-Length: 5000\r\n\r\n").find("413"), 9u);
  EXPECT_EQ(ask(s.port(), "GET /" + std::string(9000, 'x') + host + "\r\n").find("413"), 9u);
}

TEST(serve_http, a_client_that_waits_to_send_its_body_is_told_to_go_on) {
  http_server s{{"--listen", ":0"}, {.request_patience = 10s}, echo};
  s.start();
  const std::string head =
      "POST /a HTTP/1.1\r\nExpect: 100-Continue\r\nContent-Length: 2\r\nHost: ";
  harness::tcp_client waits(s.port());
  waits.say(head + "localhost\r\n\r\n");
  const std::string go_on = "HTTP/1.1 100 Continue\r\n\r\n";
  EXPECT_EQ(waits.hear(go_on.size()), go_on);
  waits.say("hi");
  const auto answer = waits.hear_all();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200") && answer.ends_with("POST /a ?  hi\n")) << answer;
  EXPECT_EQ(ask(s.port(), head + "evil.example\r\n\r\n").find("421"), 9u) << "without its body";
  EXPECT_EQ(ask(s.port(), "GET / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\r\n")
                .find("200"),
            9u)
      << "it has no body";
}

TEST(serve_http, a_whole_address_is_the_host_and_the_path) {
  http_server s{{"--listen", ":0"}, {}, echo};
  s.start();
  const auto get = [&](const std::string& target, const std::string& host = "localhost") {
    return ask(s.port(), "GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
  };
  EXPECT_TRUE(get("http://localhost:7440/a/b?c=d").ends_with("GET /a/b ? c=d \n"));
  EXPECT_TRUE(get("HTTPS://127.0.0.1?c").ends_with("GET / ? c \n"));
  EXPECT_TRUE(get("http://localhost").ends_with("GET / ?  \n"));
  EXPECT_TRUE(get("http://localhost/a", "evil.example").ends_with("GET /a ?  \n"))
      << "the header does not count";
  const auto refused = get("http://evil.example/a");
  EXPECT_EQ(refused.find("421"), 9u);
  EXPECT_NE(refused.find("the host name 'evil.example' is refused"), refused.npos) << refused;
  EXPECT_EQ(get("http://localhost@evil.example/a").find("421"), 9u);
  EXPECT_EQ(get("http:///a").find("421"), 9u);
}

TEST(serve_http, a_reader_that_takes_nothing_is_dropped) {
  std::atomic<int> alive{0};
  http_server s{{"--listen", ":0"},
                {.streams = 4, .reader_patience = 100ms},
                [&](const http_request&, const http_reply& reply) {
                  http_answer a;
                  a.stream = std::make_unique<flood>(alive);
                  reply(std::move(a));
                }};
  s.start();
  harness::tcp_client reads_nothing(s.port());
  reads_nothing.say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(reads_nothing.hear(8), "HTTP/1.1");
  harness::eventually("it is dropped", [&] { return alive == 0; });
}

namespace {

/// A server of one large answer: more than the system buffers for a connection.
class large_answer {
 public:
  explicit large_answer(std::chrono::milliseconds reader_patience,
                        std::chrono::milliseconds answer_patience = 1h)
      : server_({"--listen", ":0"},
                {.reader_patience = reader_patience, .answer_patience = answer_patience},
                [this](const http_request&, const http_reply& reply) {
                  http_answer a;
                  a.shared = all_;
                  a.body = "end";
                  reply(std::move(a));
                }) {
    server_.start();
  }
  std::unique_ptr<harness::tcp_client> reader() {
    auto client = std::make_unique<harness::tcp_client>(server_.port());
    client->say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    return client;
  }
  /// The number of answers on their way that share it.
  long shared_by() const { return all_.use_count() - 1; }
  static constexpr std::size_t size = std::size_t{16} << 20;

 private:
  const std::shared_ptr<const std::string> all_ =
      std::make_shared<const std::string>(std::string(size, 'x'));
  http_server server_;
};

}  // namespace

TEST(serve_http, a_slow_reader_gets_a_large_answer_whole) {
  // On a machine that freezes now and then, it is tried again with more patience.
  for (auto patience = 1000ms;; patience *= 2) {
    large_answer server(patience);
    const auto reader = server.reader();
    const auto began = std::chrono::steady_clock::now();
    std::chrono::nanoseconds longest_step{};
    std::size_t taken = 0;
    auto take = [&, last = began](auto bytes) mutable {
      taken += bytes().size();
      const auto now = std::chrono::steady_clock::now();
      longest_step = std::max<std::chrono::nanoseconds>(longest_step, now - last);
      last = now;
    };
    const auto step = static_cast<std::size_t>(100'000 * 1000ms / patience);
    // More time than a reader that takes nothing gets, in steps that are far shorter.
    for (auto next = began; next < began + patience * 3 / 2; next += 10ms) {
      harness::eventually("the time has come",
                          [&] { return std::chrono::steady_clock::now() >= next; });
      take([&] { return reader->hear(step); });
    }
    take([&] { return reader->hear_all(); });
    if (longest_step > patience / 2) continue;
    EXPECT_GT(taken, large_answer::size);
    EXPECT_FALSE(reader->was_reset());
    return;
  }
}

TEST(serve_http, a_reader_that_takes_nothing_of_its_answer_is_dropped) {
  large_answer server(10ms);
  auto pause = 20ms;
  harness::eventually("an answer is cut", [&] {
    const auto reader = server.reader();
    const auto reads_again = std::chrono::steady_clock::now() + pause;
    harness::eventually("it was still",
                        [&] { return std::chrono::steady_clock::now() >= reads_again; });
    pause *= 2;
    return reader->hear_all().size() < large_answer::size;
  });
}

TEST(serve_http, a_reader_that_takes_too_long_for_its_answer_is_dropped) {
  large_answer server(1h, 10ms);
  auto pause = 20ms;
  harness::eventually("an answer is cut", [&] {
    const auto reader = server.reader();
    const std::string begin = reader->hear(100'000);
    const auto reads_again = std::chrono::steady_clock::now() + pause;
    harness::eventually("the time is over",
                        [&] { return std::chrono::steady_clock::now() >= reads_again; });
    pause *= 2;
    return begin.size() + reader->hear_all().size() < large_answer::size;
  });
}

TEST(serve_http, readers_of_one_answer_have_one_copy_of_it) {
  large_answer server(1h);
  std::vector<std::unique_ptr<harness::tcp_client>> readers;
  for (int i = 0; i < 20; ++i) readers.push_back(server.reader());
  for (const auto& r : readers) EXPECT_EQ(r->hear(8), "HTTP/1.1");
  EXPECT_EQ(server.shared_by(), 20);
  const std::string whole = readers.front()->hear_all();
  EXPECT_TRUE(whole.ends_with("xend"));
  EXPECT_NE(whole.find("Content-Length: " + std::to_string(large_answer::size + 3) + "\r\n"),
            whole.npos);
  readers.clear();
  harness::eventually("none of them has it any more", [&] { return server.shared_by() == 0; });
}

namespace {

/// One large piece, and then nothing.
class one_piece : public holdfast::tool::http_stream {
 public:
  explicit one_piece(std::atomic<int>& alive) : alive_(alive) { ++alive_; }
  ~one_piece() override { --alive_; }
  std::shared_ptr<const std::string> next() override { return std::exchange(piece_, nullptr); }
  static constexpr std::size_t size = std::size_t{16} << 20;

 private:
  std::atomic<int>& alive_;
  std::shared_ptr<const std::string> piece_ =
      std::make_shared<const std::string>(std::string(size, 'x'));
};

}  // namespace

TEST(serve_http, a_viewer_that_sent_something_during_a_piece_and_leaves_is_noticed) {
  std::atomic<int> alive{0};
  http_server s{
      {"--listen", ":0"}, {.streams = 1}, [&](const http_request& r, const http_reply& reply) {
        http_answer a;
        if (r.path == "/stream") a.stream = std::make_unique<one_piece>(alive);
        reply(std::move(a));
      }};
  s.start();
  {
    harness::tcp_client viewer(s.port());
    viewer.say("GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const std::string begin = viewer.hear(10'000);
    viewer.say("x");
    (void)ask(s.port(), "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");  // the server is behind the x
    (void)viewer.hear(one_piece::size - 10'000);
  }
  harness::eventually("its end is seen", [&] { return alive == 0; });
}

TEST(serve_http, a_viewer_that_goes_on_sending_is_dropped) {
  std::atomic<int> alive{0};
  http_server s{
      {"--listen", ":0"}, {.streams = 1}, [&](const http_request&, const http_reply& reply) {
        http_answer a;
        a.stream = std::make_unique<silence>(alive);
        reply(std::move(a));
      }};
  s.start();
  harness::tcp_client viewer(s.port());
  viewer.say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_NE(viewer.hear(15).find("200"), std::string::npos);
  viewer.say(std::string(1'000, 'x'));
  EXPECT_EQ(alive, 1);
  viewer.say(std::string(20'000, 'x'));
  harness::eventually("it is dropped", [&] { return alive == 0; });
}

TEST(serve_http, streams_are_counted_and_a_viewer_that_leaves_makes_room) {
  std::atomic<int> alive{0};
  http_server s{
      {"--listen", ":0"}, {.streams = 2}, [&](const http_request&, const http_reply& reply) {
        http_answer a;
        a.stream = std::make_unique<silence>(alive);
        reply(std::move(a));
      }};
  s.start();
  const std::string request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  auto first = std::make_unique<harness::tcp_client>(s.port());
  first->say(request);
  harness::tcp_client second(s.port());
  second.say(request);
  harness::eventually("both are served", [&] { return alive == 2; });
  EXPECT_EQ(ask(s.port(), request).find("503"), 9u);
  first.reset();
  harness::eventually("its end is seen", [&] { return alive == 1; });
  harness::tcp_client third(s.port());
  third.say(request);
  EXPECT_NE(third.hear(15).find("200"), std::string::npos);
}

namespace {

/// Answers as many as may wait when a test wants it, and the others at once.
class late_answers {
 public:
  explicit late_answers(std::size_t most)
      : most_(most),
        server_({"--listen", ":0"}, {.connections = most},
                [this](const http_request&, const http_reply& reply) {
                  const std::lock_guard guard{mutex_};
                  asked_.push_back(reply);
                  if (asked_.size() > most_) reply(http_answer{});
                }) {
    server_.start();
  }
  std::unique_ptr<harness::tcp_client> client() const {
    return std::make_unique<harness::tcp_client>(server_.port());
  }
  std::unique_ptr<harness::tcp_client> asks() const {
    auto one = client();
    one->say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    return one;
  }
  std::size_t asked() const {
    const std::lock_guard guard{mutex_};
    return asked_.size();
  }
  /// The requests whose client is still there.
  std::size_t wanted() const {
    const std::lock_guard guard{mutex_};
    return static_cast<std::size_t>(
        std::count_if(asked_.begin(), asked_.end(), [](const auto& r) { return r.wanted(); }));
  }
  void answer_all() const {
    const std::lock_guard guard{mutex_};
    for (const auto& reply : asked_) {
      http_answer a;
      a.body = "late";
      reply(std::move(a));
    }
  }

 private:
  const std::size_t most_;
  mutable std::mutex mutex_;
  std::vector<http_reply> asked_;
  http_server server_;
};

}  // namespace

TEST(serve_http, a_waiting_client_keeps_its_connection_and_the_next_gets_503) {
  const late_answers s(2);
  const auto first = s.asks(), second = s.asks();
  harness::eventually("both wait", [&] { return s.asked() == 2; });
  EXPECT_EQ(s.asks()->hear_all().find("503"), 9u);
  s.answer_all();
  for (const auto* c : {&first, &second}) EXPECT_TRUE((*c)->hear_all().ends_with("late"));
}

TEST(serve_http, a_client_that_left_while_it_waited_makes_room) {
  const late_answers s(2);
  auto first = s.asks();
  const auto second = s.asks();
  harness::eventually("both wait", [&] { return s.asked() == 2; });
  first.reset();
  harness::eventually("another one is answered",
                      [&] { return s.asks()->hear(12).ends_with("200"); });
  harness::eventually("one is left", [&] { return s.wanted() == 1; });
  s.answer_all();
  EXPECT_TRUE(second->hear_all().ends_with("late"));
}

TEST(serve_http, the_oldest_silent_connection_makes_room) {
  const late_answers s(2);
  const auto waits = s.asks();
  harness::eventually("it waits", [&] { return s.asked() == 1; });
  const auto first = s.client(), second = s.client();
  const auto asks = s.asks();
  EXPECT_EQ(first->hear_all(), "");
  harness::eventually("the last one waits, too", [&] { return s.asked() == 2; });
  s.answer_all();
  for (const auto* c : {&waits, &asks}) EXPECT_TRUE((*c)->hear_all().ends_with("late"));
}

TEST(serve_http, an_address_that_it_cannot_listen_on_is_refused) {
  for (const char* nowhere : {"nowhere", "256.1.1.1:80", ":99999", ":x", ""})
    EXPECT_THROW(http_server({"--listen", nowhere}, {}, echo), holdfast::tool::failure_exit)
        << nowhere;
}

TEST(serve_http, an_address_of_another_machine_is_refused_with_a_remedy) {
  try {
    http_server({"--listen", "192.0.2.1:0"}, {}, echo);  // an address for documentation
    FAIL() << "it listens";
  } catch (const holdfast::tool::failure_exit& e) {
    const std::string why = e.what();
    EXPECT_NE(why.find("this machine does not have that address; choose one of its own, or "
                       "--listen :PORT"),
              why.npos)
        << why;
  }
}

TEST(serve_http, an_address_in_use_is_refused_with_a_possible_cause) {
  const http_server first{{"--listen", ":0"}, {}, echo};
  try {
    http_server({"--listen", ":" + std::to_string(first.port())}, {}, echo);
    FAIL() << "it listens";
  } catch (const holdfast::tool::failure_exit& e) {
    const std::string why = e.what();
    EXPECT_NE(why.find("perhaps an earlier holdfast serve, listens there; end it, or choose "
                       "--listen :PORT"),
              why.npos)
        << why;
  }
}

TEST(serve_http, a_refused_host_is_reported_with_the_option_that_allows_it) {
  http_server s{{"--listen", ":0", "--host", {"locks.example"}}, {}, echo};
  s.start();
  const auto to = [&](const std::string& host) {
    return ask(s.port(), "GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
  };
  EXPECT_EQ(to("locks.example:7440").find("200"), 9u);
  const auto refused = to("other.example");
  EXPECT_EQ(refused.find("421"), 9u);
  EXPECT_NE(refused.find("the host name 'other.example' is refused"), refused.npos) << refused;
  EXPECT_NE(refused.find("in --listen, or allow it with --host"), refused.npos) << refused;
  const auto strange = to("a\"b\\c");
  EXPECT_EQ(strange.find("421"), 9u);
  EXPECT_NE(strange.find("this host name is refused"), strange.npos) << strange;
}

TEST(serve_scanner, it_sleeps_without_viewers_and_is_fresh_when_one_comes) {
  const auto s = holdfast::open("memory:serve-scanner");
  board b{0, "memory:"};
  holdfast::tool::scanner looks{
      b, [&] { return s; }, [] {}, {.share = 0.5, .interval = 1ms, .lingers = 0s}};
  std::atomic<int> fresh{0};
  looks.when_fresh([&](bool) { ++fresh; });
  harness::eventually("it has looked", [&] { return fresh == 1; });
  std::uint64_t asked = 0;
  int quiet = 0;  // our checks, each longer than a pause of the scanner's
  harness::eventually("it asks nothing any more", [&] {
    const auto before = std::exchange(asked, s.store_operations());
    quiet = before == asked && asked != 0 ? quiet + 1 : 0;
    return quiet == 50;
  });
  holdfast::mutex m{s, "late"};
  const auto held = m.acquire();
  std::optional<board::seen> seen;
  looks.when_fresh([&](bool) {
    seen = b.find("late", wall::now());
    ++fresh;
  });
  harness::eventually("it is fresh again", [&] { return fresh == 2; });
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->what.info.holders.size(), 1u);
}

TEST(serve_scanner, names_appear_when_they_are_acquired_and_vanish_when_released) {
  const auto s = holdfast::open("memory:serve-survey");
  board b{0, "memory:"};
  holdfast::tool::scanner looks{b,
                                [&] { return s; },
                                [] {},
                                {.share = 0.5, .first_share = 1, .pattern = "a*", .interval = 1ms}};
  const auto names = [&] {
    std::string all;
    for (const auto& n : b.take(wall::now()).names) all += n.info.name + " ";
    return all;
  };
  harness::eventually("nothing is there", [&] { return b.health().round.count() != 0; });
  EXPECT_EQ(names(), "");
  holdfast::mutex ab{s, "ab"}, aa{s, "aa"}, b_too{s, "b"};
  auto one = ab.acquire(), two = aa.acquire(), other = b_too.acquire();
  harness::eventually("both are there, by name", [&] { return names() == "aa ab "; });
  two.release();
  harness::eventually("one is gone", [&] { return names() == "ab "; });
}

TEST(serve_scanner, a_job_runs_between_two_queries_and_then_its_name_is_read) {
  const auto s = holdfast::open("memory:serve-jobs");
  board b{0, "memory:"};
  holdfast::tool::scanner looks{
      b, [&] { return s; }, [] {}, {.share = 0.5, .first_share = 1, .interval = 1h}};
  harness::eventually("the first round is done", [&] { return b.health().round.count() != 0; });
  holdfast::mutex m{s, "asked"};
  const auto held = m.acquire();
  std::atomic<bool> done{false};
  looks.perform("asked", [&](const holdfast::session* with) { done = with != nullptr; });
  harness::eventually("it is done", [&] { return done.load(); });
  harness::eventually("it is known", [&] { return b.find("asked", wall::now()).has_value(); });
}

TEST(serve_scanner, a_job_before_the_first_query_opens_the_store) {
  board b{0, "memory:"};
  std::atomic<int> with_a_session{0}, without{0};
  holdfast::tool::scanner looks{
      b, [] { return holdfast::open("memory:serve-early"); }, [] {}, {.lingers = -1h}};
  looks.perform("x", [&](const holdfast::session* s) { ++(s ? with_a_session : without); });
  harness::eventually("it is done", [&] { return with_a_session + without == 1; });
  EXPECT_EQ(with_a_session, 1);
}

TEST(serve_scanner, a_limited_number_may_wait_for_the_first_round) {
  using holdfast::tool::scanner;
  board b{0, "memory:"};
  std::atomic<int> tries{0}, refused{0}, told{0};
  std::mutex opening;
  std::unique_lock away{opening};
  scanner looks{b,
                [&]() -> holdfast::session {
                  ++tries;
                  const std::lock_guard wait{opening};
                  return holdfast::open("memory:serve-crowd");
                },
                [] {},
                {}};
  harness::eventually("it tries to open", [&] { return tries == 1; });
  std::vector<std::size_t> too_late;
  const auto ask = [&](std::size_t i, bool stays) {
    looks.when_fresh(
        [&, i](bool fresh) {
          ++(fresh ? told : refused);
          if (!fresh) too_late.push_back(i);
        },
        [stays] { return stays; });
  };
  for (std::size_t i = 0; i < scanner::max_pending + 3; ++i) ask(i, i != 1);
  EXPECT_EQ(too_late,
            (std::vector<std::size_t>{scanner::max_pending + 1, scanner::max_pending + 2}))
      << "one has left, and those that came first keep their places";
  for (std::size_t i = 0; i < scanner::max_pending; ++i)
    looks.perform("x", [&](const holdfast::session* with) { told += with != nullptr ? 1 : 0; });
  int nothing = 0;
  looks.perform("x", [&](const holdfast::session* with) { nothing += with == nullptr ? 1 : 0; });
  EXPECT_EQ(nothing, 1);
  away.unlock();
  harness::eventually("all the others are told",
                      [&] { return told == 2 * static_cast<int>(scanner::max_pending); });
}

TEST(serve_scanner, an_opened_limit_shows_its_buckets) {
  const auto s = holdfast::open("memory:serve-limits");
  board b{0, "memory:"};
  holdfast::tool::scanner looks{b, [&] { return s; }, [] {}, {.share = 0.5}};
  holdfast::rate_limiter l{s, "api", {{.tokens = 5, .per = 24h, .by = {"client"}, .name = "each"}}};
  (void)l.try_take(3, {{"client", "acme"}});
  const auto buckets = [&] {
    const auto seen = b.find("api", wall::now());
    return seen ? seen->what.buckets : std::vector<holdfast::rate_bucket>{};
  };
  harness::eventually("it is there", [&] { return b.find("api", wall::now()).has_value(); });
  EXPECT_TRUE(buckets().empty()) << "nobody asked";
  b.want("api", holdfast::boot_clock::now());
  harness::eventually("they are there", [&] { return !buckets().empty(); });
  EXPECT_EQ(buckets()[0].remaining, 2u);
  EXPECT_EQ(buckets()[0].key, std::vector<std::string>{"acme"});
}

namespace {

/// A store whose queries take a while.
class slow_store final : public holdfast::store::forwarding_store {
 public:
  using forwarding_store::forwarding_store;
  holdfast::result<holdfast::store::permits_reply> permits(
      std::string_view name, const holdfast::store::permits_command& c) override {
    const auto answered = std::chrono::steady_clock::now() + query;
    if (c.verb == holdfast::store::permits_verb::inspect)
      harness::eventually("it answers",
                          [&] { return std::chrono::steady_clock::now() > answered; });
    return forwarding_store::permits(name, c);
  }
  static constexpr auto query = 3ms;
};

/// A store whose lists take a while.
class slow_lists final : public holdfast::store::forwarding_store {
 public:
  using forwarding_store::forwarding_store;
  holdfast::result<std::vector<std::string>> names() override {
    const auto answered = std::chrono::steady_clock::now() + slow_store::query;
    harness::eventually("it answers", [&] { return std::chrono::steady_clock::now() > answered; });
    return forwarding_store::names();
  }
};

template <class Store = slow_store>
holdfast::session slow_session(const std::string& url) {
  return holdfast::open(url,
                        {.decorate = [](std::unique_ptr<holdfast::store::session_store> inner) {
                          return std::make_unique<Store>(std::move(inner));
                        }});
}

/// After one query the pace allows no other one in the same burst.
const holdfast::tool::scanner::plan one_query_a_burst{
    .share = slow_store::query / (pace::window * 1.0), .first_share = 1};

}  // namespace

TEST(serve_scanner, a_listed_name_that_was_not_read_yet_does_not_count_as_free) {
  const auto s = slow_session("memory:serve-unseen");
  const auto opened = holdfast::mutex{s, "opened"}.acquire();
  board b{0, "memory:"};
  holdfast::tool::scanner looks{b, [&] { return s; }, [] {}, one_query_a_burst};
  harness::eventually("the first round is done", [&] { return b.health().round.count() != 0; });
  const auto late = holdfast::mutex{s, "late"}.acquire();
  const auto taken_at = wall::now();
  harness::eventually("it is known", [&] {
    b.want("opened", holdfast::boot_clock::now());  // it is queried between the list and the name
    const auto listed_at = b.listed_at();
    const bool known = b.find("late", wall::now()).has_value();
    EXPECT_TRUE(known || listed_at < taken_at);
    return known;
  });
}

TEST(serve_scanner, a_listed_name_is_read_at_once_however_long_the_list_took) {
  const auto s = slow_session<slow_lists>("memory:serve-lists");
  const auto held = holdfast::mutex{s, "held"}.acquire();
  board b{0, "memory:"};
  const double share = slow_store::query / (1h * 1.0);  // the list is paid for within an hour
  holdfast::tool::scanner looks{
      b, [&] { return s; }, [] {}, {.share = share, .first_share = share}};
  harness::eventually("it is known", [&] { return b.find("held", wall::now()).has_value(); });
}

TEST(serve_scanner, the_wait_for_a_busy_processor_is_counted) {
  std::thread both{[&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(::sched_getcpu(), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    const std::jthread rival{[&](const std::stop_token& over) {  // on the same processor
      while (!over.stop_requested()) continue;
    }};
    const holdfast::tool::processor_wait own;
    const auto before = own.sum();
    EXPECT_NO_THROW(harness::eventually("it waits", [&] { return own.sum() > before; }));
  }};
  both.join();
}

TEST(serve_scanner, a_name_that_a_viewer_has_opened_leaves_half_of_the_time_to_the_others) {
  const auto s = slow_session("memory:serve-turns");
  holdfast::semaphore seen{s, "seen", 2}, opened{s, "opened", 2};
  const auto first = seen.acquire(), other = opened.acquire();
  board b{0, "memory:"};
  holdfast::tool::scanner looks{b, [&] { return s; }, [] {}, one_query_a_burst};
  harness::eventually("the first round is done", [&] { return b.health().round.count() != 0; });
  const auto second = seen.acquire();
  harness::eventually("the other name is looked at again", [&] {
    b.want("opened", holdfast::boot_clock::now());
    return b.find("seen", wall::now())->what.info.holders.size() == 2;
  });
}

TEST(serve_dashboard, viewers_share_the_answers_that_are_long) {
  using namespace holdfast::tool;
  const auto s = holdfast::open("memory:serve-shared");
  const auto other = holdfast::open("memory:serve-shared");
  holdfast::mutex m{s, "here"}, of_other{other, "here"};
  auto held = m.acquire();
  auto waits = holdfast::async_acquire(of_other).future();
  std::atomic<int> made{0};
  dashboard_options o;
  o.listen = ":0";
  o.above = [&](const graph_process&) {
    ++made;
    return std::vector<std::uint32_t>{};
  };
  holdfast::tool::log to{common_options{}, 2};
  dashboard page{{{"one", [&] { return s; }}}, std::move(o), to};
  const auto graph = [&] {
    return ask(page.port(), "GET /api/graph HTTP/1.1\r\nHost: localhost\r\n\r\n");
  };
  harness::eventually("the waiter is known",
                      [&] { return graph().find("\"lock\":\"here\"") != std::string::npos; });
  harness::eventually("many viewers have one graph", [&] {
    const int before = made;
    for (int i = 0; i < 10; ++i) (void)graph();
    return made - before < 10;
  });
  held.release();
  (void)waits.get();
}

TEST(serve_dashboard, metrics_are_made_of_all_stores_together_when_all_are_fresh) {
  using namespace holdfast::tool;
  const auto s = holdfast::open("memory:serve-metrics");
  holdfast::mutex m{s, "here"};
  const auto held = m.acquire();
  dashboard_options o;
  o.listen = ":0";
  o.metrics = [](std::span<const snapshot> all) {
    std::string text;
    for (const snapshot& one : all) {
      text += one.store + " " + std::to_string(one.health.reachable);
      for (const listed_name& n : one.names) text += " " + n.info.name;
      text += "\n";
    }
    return text + "# EOF\n";
  };
  holdfast::tool::log to{common_options{}, 2};
  const auto open = [&] { return s; };
  dashboard page{{{"one", open}, {"two", open}}, std::move(o), to};
  const auto answer = ask(page.port(), "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(answer.ends_with("\r\n\r\none 1 here\ntwo 1 here\n# EOF\n")) << answer;
  EXPECT_NE(answer.find("Content-Type: application/openmetrics-text"), answer.npos);
}

namespace {

/// A store that hangs: an attempt to open it fails when the test allows it.
class hanging_store {
 public:
  holdfast::session open() {
    const int mine = ++begun_;
    failed_.wait([&] { return allowed_ >= mine; });
    throw std::runtime_error("it hangs");
  }
  void fail_one() {
    failed_.change([&] { ++allowed_; });
  }
  void fail_all() {
    failed_.change([&] { allowed_ = 1'000'000; });
  }
  int attempts() const { return begun_; }

 private:
  struct watched {
    std::mutex mutex;
    std::condition_variable changed;
    void change(const std::function<void()>& how) {
      const std::lock_guard guard{mutex};
      how();
      changed.notify_all();
    }
    void wait(const std::function<bool()>& until) {
      std::unique_lock lock{mutex};
      changed.wait(lock, until);
    }
  };
  std::atomic<int> begun_{0};
  watched failed_;
  int allowed_ = 0;
};

}  // namespace

TEST(serve_dashboard, metrics_wait_for_stores_that_hang_at_the_same_time) {
  using namespace holdfast::tool;
  hanging_store one, two;
  std::atomic<int> made{0};
  dashboard_options o;
  o.listen = ":0";
  o.metrics = [&](std::span<const snapshot> all) {
    ++made;
    std::string text;
    for (const snapshot& s : all) text += s.store + (s.health.reachable ? " up\n" : " away\n");
    return text;
  };
  holdfast::tool::log to{common_options{}, 2};
  dashboard page{
      {{"one", [&] { return one.open(); }}, {"two", [&] { return two.open(); }}}, std::move(o), to};
  const struct end {
    hanging_store &one, &two;
    ~end() { one.fail_all(), two.fail_all(); }
  } lets_the_threads_go{one, two};
  harness::eventually("both are being opened",
                      [&] { return one.attempts() == 1 && two.attempts() == 1; });
  harness::tcp_client scrape{page.port(), 30s};
  scrape.say("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  // The server has the first request when it answers the second one.
  (void)ask(page.port(), "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  two.fail_one();
  harness::eventually("the next attempt hangs as well", [&] { return two.attempts() == 2; });
  EXPECT_EQ(made, 0) << "the other store has not been queried";
  one.fail_one();
  EXPECT_TRUE(scrape.hear_all().ends_with("one away\ntwo away\n"));
}

}  // namespace tool_test
