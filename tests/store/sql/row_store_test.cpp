#include "store/sql/row_store.hpp"
#include "harness/concurrently.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <future>
#include <map>
#include <new>
#include <optional>
#include <thread>

#include "counting_waits.hpp"
#include "harness/eventually.hpp"
#include "store/sql/is_free.hpp"

// How a row is changed, over connections that count and break as a test wants it.
namespace sql_test {
namespace {

using namespace holdfast::store;
using namespace holdfast::store::sql;
using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::boot_time;
using holdfast::done;
using holdfast::errc;
using holdfast::failure;
using holdfast::result;
using holdfast::status;

/// The state that the connections share.
struct server {
  std::map<std::string, row, std::less<>> rows;
  std::int64_t now_at = 1'000'000;
  int reads = 0, writes = 0, locks = 0, sweeps = 0;
  int links = 0;               ///< ever made
  int only_read_over = 0;      ///< this many of them lead to a server that refuses writes
  int break_after_writes = 0;  ///< this many answers to a replacement get lost, one after the other
  /// The next connection leads to a read-only server with these rows.
  std::optional<std::map<std::string, row, std::less<>>> lagging{};
  int others = 0;  ///< how often another client writes before a replacement comes
  int swept = 0;   ///< how often another client acquires, releases and sweeps the name in between
  std::int64_t floor = 0;
  int refused = 0;             ///< how many replacements or transactions are undone, with an error
  int outrun = 0;              ///< how many locks fail, one after the other
  bool outrun_breaks = false;  ///< such a failure ends the connection
  int thwarted = 0;     ///< how many replacements meet a deadlock, and leave a transaction open
  int over_broken = 0;  ///< queries over a connection that is not usable
  std::size_t most_at_once = 0;  ///< bytes of records in one replacement
  bool break_after_unlock = false;
  int silent_up_to = 0;  ///< no answer comes over this many of the first connections
  std::function<void()> once_read{};
  int late = 0;                 ///< how many transactions end after their caller has given up
  std::int64_t lock_takes = 0;  ///< microseconds, of each name
  std::function<void()> once_broken{};  ///< called before anybody looks after a break
  std::function<void()> once_locked{};
  std::int64_t unlocked_until = 0;
  std::vector<std::string> locked{};
  /// The replacements that were requested, one after the other.
  struct asked {
    std::string name;
    std::int64_t version;
    std::optional<std::int64_t> assumed_now;
    std::optional<std::int64_t> until_at;
    bool asks_time;
  };
  std::vector<asked> replaced{};
};

class fake_link final : public row_link {
 public:
  explicit fake_link(server& s) : server_(s), number_(++s.links) {}
  bool usable() const noexcept override { return !broken_; }
  bool did_nothing() const noexcept override { return did_nothing_; }

  result<std::vector<row>> read(std::span<const std::string_view> names, boot_time) override {
    ++server_.reads;
    server_.over_broken += broken_ ? 1 : 0;
    if (server_.once_read) std::exchange(server_.once_read, {})();
    if (is_silent()) return no_answer();
    std::vector<row> all;
    for (const auto name : names) all.push_back(find(name));
    return all;
  }

  result<std::vector<replaced>> replace(std::span<const replacement> all, boot_time) override {
    ++server_.writes;
    if (number_ <= server_.only_read_over) return leave();
    if (is_refused()) return failure{errc::unavailable, "the row is locked"};
    if (server_.thwarted > 0) {
      --server_.thwarted;
      broken_ = did_nothing_ = true;
      return failure{errc::busy, "a deadlock"};
    }
    std::vector<replaced> outcomes;
    std::size_t bytes = 0;
    for (const auto& r : all) bytes += r.record.size();
    server_.most_at_once = std::max(server_.most_at_once, bytes);
    for (const auto& r : all) {
      server_.replaced.push_back(
          {std::string(r.name), r.version, r.assumed_now, r.until_at, r.asks_time});
      outcomes.push_back(put(r));
    }
    if (server_.break_after_writes > 0) {
      --server_.break_after_writes;
      broken_ = true;
      if (server_.once_broken) server_.once_broken();
      if (server_.lagging) server_.rows = *server_.lagging, server_.only_read_over = 100;
      return failure{errc::unavailable, "cut"};
    }
    return outcomes;
  }

  result<std::vector<row>> lock(std::span<const std::string_view> names, boot_time) override {
    ++server_.locks;
    if (server_.once_locked) std::exchange(server_.once_locked, {})();
    if (is_silent()) return no_answer();
    broken_ = broken_ || (server_.outrun > 0 && server_.outrun_breaks);
    if (server_.outrun > 0) return --server_.outrun, failure{errc::busy, "a deadlock"};
    std::vector<row> rows;
    for (const auto name : names) {
      server_.locked.emplace_back(name);
      server_.rows.try_emplace(std::string(name));
      server_.now_at += server_.lock_takes;
      rows.push_back(find(name));
    }
    return rows;
  }
  status unlock(std::span<const rewrite> all, std::int64_t until_at, boot_time) override {
    if (!all.empty() && number_ <= server_.only_read_over) return leave();
    if (!all.empty()) server_.unlocked_until = until_at;
    if (is_refused()) return failure{errc::unavailable, "the statement took too long"};
    if (server_.late > 0) {
      --server_.late;
      broken_ = true;
      return failure{errc::timed_out, "late"};
    }
    for (const auto& [name, record] : all) {
      if (record.empty())
        server_.rows.erase(server_.rows.find(name));
      else
        write(name, record);
    }
    broken_ = std::exchange(server_.break_after_unlock, false);
    if (broken_ && server_.once_broken) server_.once_broken();
    return broken_ ? status(failure{errc::unavailable, "cut"}) : status(done{});
  }
  status sweep(std::span<const std::string>, boot_time) override {
    ++server_.sweeps;
    return done{};
  }
  result<std::vector<state_store::entry>> entries(boot_time) override {
    if (is_silent()) return no_answer();
    return std::vector<state_store::entry>{};
  }
  result<std::vector<state_store::entry>> entries_behind(std::string_view name, std::size_t most,
                                                         boot_time) override {
    std::vector<state_store::entry> some;
    for (const auto& [each, there] : server_.rows) {
      if (each > name && some.size() < most) some.push_back({each, there.record});
    }
    return some;
  }

 private:
  failure leave() {
    broken_ = true;
    return {errc::read_only, "it was primary once"};
  }
  bool is_silent() const { return number_ <= server_.silent_up_to; }
  failure no_answer() {
    broken_ = true;
    return {errc::unavailable, "no answer in time", true};
  }
  bool is_refused() { return did_nothing_ = server_.refused > 0 && server_.refused-- > 0; }
  row find(std::string_view name) const {
    const auto at = server_.rows.find(name);
    row r = at == server_.rows.end() ? row{} : at->second;
    r.now_at = server_.now_at;
    r.fence_floor = server_.floor;
    return r;
  }
  void write(std::string_view name, std::string_view record) {
    row& r = server_.rows[std::string(name)];
    r = {true, r.version + 1, std::string(record), 0, 0};
  }
  replaced put(const replacement& r) {
    EXPECT_FALSE(r.record.empty()) << "a row goes only by a sweep";
    if (server_.others > 0) --server_.others, write(r.name, "somebody else");
    const row there = find(r.name);
    if (server_.swept > 0) --server_.swept, server_.floor = server_.now_at += 1'000;
    if (there.there != r.there || (r.there && there.version != r.version)) return {};
    if (!r.there && r.version < server_.floor) return {};
    if (!r.there) server_.rows[std::string(r.name)].version = r.version - 1;
    write(r.name, r.record);
    return {true, server_.rows.find(r.name)->second.version, server_.now_at};
  }

  server& server_;
  const int number_;
  bool broken_ = false;
  bool did_nothing_ = false;
};

/// Adds a letter to the record, and counts its calls.
class adding final : public transition {
 public:
  const std::string* apply(std::string_view record, const moment&) override {
    ++asked;
    next_ = std::string(record) + "x";
    return &next_;
  }
  void may_have_been_stored() noexcept override { ++in_doubt; }
  bool is_recognizable() const noexcept override { return recognizable; }
  int asked = 0;
  int in_doubt = 0;
  bool recognizable = true;

 private:
  std::string next_;
};

class row_stores : public testing::Test {
 protected:
  status add(std::string_view name = "n") {
    adding change;
    const state_store::step step{name, &change};
    return std::move(store_.transact(std::span(&step, 1)).front());
  }
  std::string record(std::string_view name = "n") const {
    return server_.rows.find(name)->second.record;
  }

  server server_;
  row_store store_{[this](boot_time) -> result<std::unique_ptr<row_link>> {
                     return std::unique_ptr<row_link>(std::make_unique<fake_link>(server_));
                   },
                   2, 5s};
};

TEST_F(row_stores, the_last_writer_of_a_row_needs_one_round_trip) {
  EXPECT_TRUE(add());
  EXPECT_EQ(server_.reads, 1);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(add());
  EXPECT_EQ(server_.reads, 1);
  EXPECT_EQ(server_.writes, 6);
  EXPECT_EQ(record(), "xxxxxx");
}

// A statement that answers with a row costs the server more than one that only counts.
TEST_F(row_stores, a_server_whose_time_is_known_gets_no_query_for_it) {
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(add());
  EXPECT_FALSE(server_.replaced.empty());
  for (const auto& asked : server_.replaced) EXPECT_FALSE(asked.asks_time);
}

TEST_F(row_stores, a_session_that_guessed_wrong_reads_first_until_a_row_is_as_it_left_it) {
  EXPECT_TRUE(add());
  server_.others = 1;
  EXPECT_TRUE(add());  // guess, read, replace
  EXPECT_EQ(record(), "somebody elsex");
  EXPECT_EQ(server_.reads, 2);
  EXPECT_TRUE(add());  // read, replace: the record as it was left
  EXPECT_EQ(server_.reads, 3);
  EXPECT_TRUE(add());
  EXPECT_EQ(server_.reads, 3);
}

// Within it, the thread would see changes of other threads that are not committed.
TEST_F(row_stores, a_thwarted_change_is_not_decided_anew_in_its_open_transaction) {
  EXPECT_TRUE(add());
  server_.thwarted = 1;
  EXPECT_TRUE(add());
  EXPECT_EQ(record(), "xx");
  EXPECT_EQ(server_.over_broken, 0);
  EXPECT_EQ(server_.links, 2);
}

TEST_F(row_stores, a_writer_that_is_overtaken_twice_takes_the_lock_of_the_row) {
  EXPECT_TRUE(add());
  server_.others = 2;
  EXPECT_TRUE(add());
  EXPECT_EQ(server_.locks, 1);
  EXPECT_EQ(record(), "somebody elsex");
  EXPECT_GT(server_.unlocked_until, server_.now_at);
  EXPECT_LE(server_.unlocked_until, server_.now_at + 5'000'000)
      << "the caller has given up by then";
}

/// Writes down the time from which the next fence is made.
class dating final : public transition {
 public:
  const std::string* apply(std::string_view, const moment& now) override {
    return &(next_ = std::to_string(now.wall_at));
  }

 private:
  std::string next_;
};

TEST_F(row_stores, a_name_that_was_swept_meanwhile_is_decided_again_above_the_floor) {
  server_.swept = 1;
  dating change;
  const state_store::step step{"n", &change};
  EXPECT_TRUE(store_.transact(std::span(&step, 1)).front());
  EXPECT_GE(std::stoll(record()), server_.floor);
  EXPECT_GT(server_.floor, 0);
}

TEST_F(row_stores, a_write_before_a_broken_connection_is_not_repeated) {
  for (int i = 0; i < 3; ++i) {
    server_.break_after_writes = 1;
    EXPECT_TRUE(add());
  }
  EXPECT_EQ(record(), "xxx");
}

// What is in the row may be the same change by another client, made while this request was lost.
TEST_F(row_stores, a_change_that_its_record_does_not_show_is_made_again) {
  adding change;
  change.recognizable = false;
  const state_store::step step{"n", &change};
  server_.break_after_writes = 1;
  EXPECT_TRUE(store_.transact(std::span(&step, 1)).front());
  EXPECT_EQ(record(), "xx");
  EXPECT_EQ(change.in_doubt, 1);
}

TEST_F(row_stores, a_commit_is_recognized_by_any_record_that_shows_its_change) {
  for (const bool shown : {true, false}) {
    server_.rows.clear();
    server_.break_after_unlock = true;
    adding first, second;
    first.recognizable = false;
    second.recognizable = shown;
    const state_store::step steps[] = {{"n", &first}, {"m", &second}};
    EXPECT_TRUE(store_.transact_together(steps, [](auto) { return state_store::verdict::go_on; }));
    EXPECT_EQ(record("n") + record("m"), shown ? "xx" : "xxxx");
  }
}

// The first answer got lost, the second one, too, and then a standby took over that has neither.
TEST_F(row_stores, a_change_that_the_next_server_lacks_is_decided_again) {
  EXPECT_TRUE(add());
  server_.break_after_writes = 2;
  server_.once_broken = [this, before = server_.rows, breaks = 0]() mutable {
    if (++breaks == 2) server_.rows = before;
  };
  EXPECT_TRUE(add());
  EXPECT_EQ(record(), "xx");
}

// A standby that has taken over counts on from an older version: the same number may be another
// record there.
TEST_F(row_stores, a_row_known_over_a_broken_connection_is_not_guessed) {
  EXPECT_TRUE(add());
  server_.break_after_writes = 1;
  EXPECT_TRUE(add("m"));
  server_.rows.find("n")->second.record = "somebody else";
  EXPECT_TRUE(add());
  EXPECT_EQ(record(), "somebody elsex");
}

TEST_F(row_stores, a_possible_earlier_write_is_reported_before_a_new_decision) {
  EXPECT_TRUE(add());
  adding change;
  const state_store::step step{"n", &change};
  server_.others = 1;
  EXPECT_TRUE(store_.transact(std::span(&step, 1)).front());
  EXPECT_EQ(change.in_doubt, 0);
  server_.others = server_.break_after_writes = 1;
  EXPECT_TRUE(store_.transact(std::span(&step, 1)).front());
  EXPECT_EQ(change.in_doubt, 1);
}

TEST_F(row_stores, a_server_that_cuts_every_answer_leaves_the_outcome_unknown) {
  EXPECT_TRUE(add());
  server_.break_after_writes = 100;
  server_.others = 100;
  const auto failed = add();
  ASSERT_FALSE(failed);
  EXPECT_TRUE(failed.error().outcome_unknown);
}

TEST_F(row_stores, a_sent_write_is_in_doubt_although_a_lagging_server_refuses_it) {
  EXPECT_TRUE(add());
  server_.lagging = server_.rows;
  server_.break_after_writes = 1;
  const auto failed = add();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, errc::read_only);
  EXPECT_TRUE(failed.error().outcome_unknown) << "the first server may have done it";
}

TEST_F(row_stores, a_former_primary_is_left) {
  EXPECT_TRUE(add());
  server_.only_read_over = server_.links;
  EXPECT_TRUE(add());
  EXPECT_EQ(record(), "xx");
  EXPECT_EQ(server_.links, 2);
  server_.only_read_over = server_.links;
  adding change;
  const state_store::step steps[] = {{"n", &change}};
  EXPECT_TRUE(store_.transact_together(steps, [](auto) { return state_store::verdict::go_on; }));
  EXPECT_EQ(record(), "xxx");
}

TEST_F(row_stores, a_refusal_to_write_is_reported_if_a_new_connection_gets_it_too) {
  EXPECT_TRUE(add());
  server_.only_read_over = 100;
  server_.others = 1;
  adding change;
  const state_store::step steps[] = {{"n", &change}};
  for (const auto& refused :
       {add(), store_.transact_together(steps, [](auto) { return state_store::verdict::go_on; })}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::read_only);
    EXPECT_FALSE(refused.error().outcome_unknown) << "nothing was done";
  }
  EXPECT_EQ(server_.links, 3) << "one more, and one for the next call";
}

// Otherwise two batches could wait for each other's rows.
TEST_F(row_stores, a_batch_is_written_in_the_order_of_the_names) {
  adding one, other, last;
  const state_store::step steps[] = {{"b", &one}, {"c", &other}, {"a", &last}};
  for (const auto& so : store_.transact(steps)) EXPECT_TRUE(so);
  ASSERT_EQ(server_.replaced.size(), 3u);
  EXPECT_EQ(server_.replaced[0].name, "a");
  EXPECT_EQ(server_.replaced[1].name, "b");
  EXPECT_EQ(server_.replaced[2].name, "c");
}

// Otherwise a name that was removed and came back would be taken for the former one.
TEST_F(row_stores, a_new_row_begins_with_an_unused_version) {
  EXPECT_TRUE(add());
  EXPECT_EQ(server_.replaced.at(0).version, server_.now_at);
  server_.rows.clear();
  server_.floor = server_.now_at + 5'000;
  EXPECT_TRUE(add("other"));
  EXPECT_EQ(server_.replaced.at(1).version, server_.floor);
}

/// Removes the record.
class removing final : public transition {
 public:
  const std::string* apply(std::string_view, const moment&) override { return &nothing_; }

 private:
  const std::string nothing_{};
};

/// Calls `by` between its first decision and the write.
class overtaken final : public transition {
 public:
  explicit overtaken(std::function<void()> by) : by_(std::move(by)) {}
  const std::string* apply(std::string_view, const moment&) override {
    if (const auto call = std::exchange(by_, {})) call();
    return &next_;
  }

 private:
  std::function<void()> by_;
  const std::string next_ = "late";
};

// Two clients write; one of them for a row that it read before the other had made and removed it.
// Otherwise the versions of its row could reach the values that a third client has seen in the row
// before.
TEST_F(row_stores, a_name_made_and_removed_meanwhile_continues_after_its_versions) {
  row_store other{[this](boot_time) -> result<std::unique_ptr<row_link>> {
                    return std::unique_ptr<row_link>(std::make_unique<fake_link>(server_));
                  },
                  2, 5s};
  const auto step_of_other = [&](transition& change) {
    const state_store::step one{"n", &change};
    EXPECT_TRUE(other.transact(std::span(&one, 1)).front());
  };
  std::int64_t seen = 0;
  overtaken change{[&] {
    server_.now_at += 3;
    adding makes;
    step_of_other(makes);
    seen = server_.rows.find("n")->second.version;
    removing ends;
    step_of_other(ends);
  }};
  const state_store::step step{"n", &change};
  EXPECT_TRUE(store_.transact(std::span(&step, 1)).front());
  EXPECT_EQ(record(), "late");
  EXPECT_GT(server_.rows.find("n")->second.version, seen);
}

TEST_F(row_stores, a_record_that_has_ended_is_a_free_lock_until_the_sweep) {
  EXPECT_TRUE(add());
  removing change;
  const state_store::step steps[] = {{"n", &change}};
  EXPECT_TRUE(store_.transact(steps).front());
  EXPECT_TRUE(is_free(record()) && !record().empty()) << record();
  const auto writes = server_.writes;
  EXPECT_TRUE(store_.transact(steps).front());
  EXPECT_EQ(server_.writes, writes) << "it is over already";
  EXPECT_TRUE(add());
  EXPECT_TRUE(store_.transact_together(steps, [](auto) { return state_store::verdict::go_on; }));
  EXPECT_TRUE(is_free(record()) && !record().empty()) << record();
}

TEST_F(row_stores, a_decision_at_a_guessed_time_names_that_time) {
  EXPECT_TRUE(add());
  EXPECT_FALSE(server_.replaced.at(0).assumed_now) << "it was read";
  EXPECT_TRUE(add());
  ASSERT_TRUE(server_.replaced.at(1).assumed_now);
  EXPECT_GE(*server_.replaced.at(1).assumed_now, server_.now_at);
}

// A guess is bounded by its time already.
TEST_F(row_stores, a_decision_at_a_time_that_was_read_names_its_deadline) {
  EXPECT_TRUE(add());
  ASSERT_TRUE(server_.replaced.at(0).until_at);
  EXPECT_GT(*server_.replaced.at(0).until_at, server_.now_at);
  EXPECT_LE(std::chrono::microseconds(*server_.replaced.at(0).until_at - server_.now_at), 5s);
  EXPECT_TRUE(add());
  EXPECT_FALSE(server_.replaced.at(1).until_at);
}

/// Takes its time.
class slow final : public transition {
 public:
  const std::string* apply(std::string_view, const moment&) override {
    asked_at = boot_clock::now();
    while (boot_clock::now() < asked_at + 50ms) {
    }
    return &(next_ += 'x');
  }
  boot_time asked_at{};

 private:
  std::string next_;
};

// Otherwise a batch of many records would have only half of its time.
TEST_F(row_stores, a_slow_decision_may_arrive_until_its_caller_times_out) {
  slow change;
  const state_store::step step{"n", &change};
  const auto began = boot_clock::now();
  EXPECT_TRUE(store_.transact(std::span(&step, 1)).front());
  const auto left = std::chrono::floor<std::chrono::microseconds>(began + 5s - change.asked_at);
  EXPECT_GE(*server_.replaced.at(0).until_at, server_.now_at + left.count());
  server_.others = 2;
  const auto again = boot_clock::now();
  EXPECT_TRUE(store_.transact(std::span(&step, 1)).front());
  ASSERT_EQ(server_.locks, 1);
  const auto rest = std::chrono::floor<std::chrono::microseconds>(again + 5s - change.asked_at);
  EXPECT_GE(server_.unlocked_until, server_.now_at + rest.count());
}

TEST_F(row_stores, a_request_without_time_left_fails_and_takes_no_lock) {
  row_store hasty{[this](boot_time) -> result<std::unique_ptr<row_link>> {
                    return std::unique_ptr<row_link>(std::make_unique<fake_link>(server_));
                  },
                  2, 0s};
  server_.others = 1;
  adding change;
  const state_store::step step{"n", &change};
  const auto so = std::move(hasty.transact(std::span(&step, 1)).front());
  ASSERT_FALSE(so);
  EXPECT_EQ(so.error().code, errc::unavailable);
  EXPECT_NE(so.error().what.find("command_timeout"), std::string::npos) << so.error().what;
  EXPECT_FALSE(so.error().outcome_unknown);
  EXPECT_EQ(server_.locks, 0);
}

TEST_F(row_stores, a_write_undone_because_it_was_late_is_not_in_doubt_or_repeated) {
  adding change;
  const state_store::step steps[] = {{"n", &change}};
  const auto together = [&] {
    return store_.transact_together(steps, [](auto) { return state_store::verdict::go_on; });
  };
  for (int i = 0; i < 2; ++i) {
    server_.late = 1;
    server_.others = i == 0 ? 1 : 0;
    const int links = server_.links;
    const auto so = i == 0 ? std::move(store_.transact(steps).front()) : together();
    ASSERT_FALSE(so);
    EXPECT_EQ(so.error().code, errc::unavailable);
    EXPECT_NE(so.error().what.find("command_timeout"), std::string::npos) << so.error().what;
    EXPECT_FALSE(so.error().outcome_unknown);
    EXPECT_EQ(server_.links, links + 1) << "the one that it went over";
  }
}

TEST_F(row_stores, a_write_that_the_server_reports_as_undone_is_not_in_doubt) {
  adding change;
  const state_store::step steps[] = {{"n", &change}};
  const auto together = [&] {
    return store_.transact_together(steps, [](auto) { return state_store::verdict::go_on; });
  };
  const auto expect_known = [](const status& so) {
    ASSERT_FALSE(so);
    EXPECT_EQ(so.error().code, errc::unavailable);
    EXPECT_FALSE(so.error().outcome_unknown) << so.error().what;
  };
  ASSERT_TRUE(add());
  server_.refused = 1;
  expect_known(add());
  server_.refused = 1;
  expect_known(together());
  server_.others = 2;
  server_.once_locked = [this] { server_.refused = 1; };
  expect_known(add());
  EXPECT_EQ(server_.locks, 2);
}

// The first request may still be in the network, or wait for the row, when the second one is
// refused.
TEST_F(row_stores, a_write_over_a_broken_connection_is_in_doubt_after_any_next_answer) {
  ASSERT_TRUE(add());
  server_.others = 1;
  server_.break_after_writes = 1;
  server_.once_broken = [this] { server_.refused = 1; };
  const auto so = add();
  ASSERT_FALSE(so);
  EXPECT_EQ(so.error().what, "the row is locked");
  EXPECT_TRUE(so.error().outcome_unknown);
}

// The request was carried out, and then others wrote.
TEST_F(row_stores, a_write_over_a_broken_connection_is_in_doubt_although_the_next_is_late) {
  EXPECT_TRUE(add());
  server_.break_after_writes = 1;
  server_.once_broken = [&] {
    server_.rows["n"] = {true, 99, "somebody else", 0, 0};
    server_.others = 1;  // so it takes the lock
    server_.late = 1;
  };
  const auto gone = add();
  ASSERT_FALSE(gone);
  EXPECT_EQ(server_.locks, 1);
  EXPECT_EQ(gone.error().code, errc::unavailable);
  EXPECT_TRUE(gone.error().outcome_unknown);
}

TEST_F(row_stores, the_cause_of_a_broken_connection_is_reported_without_a_new_one) {
  row_store once{[this](boot_time) -> result<std::unique_ptr<row_link>> {
                   if (server_.links > 0) return failure{errc::unavailable, "nobody listens"};
                   return std::unique_ptr<row_link>(std::make_unique<fake_link>(server_));
                 },
                 2, 5s};
  adding change;
  const state_store::step steps[] = {{"n", &change}};
  ASSERT_TRUE(once.transact(steps).front());
  server_.break_after_writes = 1;
  const auto alone = std::move(once.transact(steps).front());
  server_.links = 0;
  ASSERT_TRUE(once.transact(steps).front());
  server_.break_after_unlock = true;
  const auto together =
      once.transact_together(steps, [](auto) { return state_store::verdict::go_on; });
  for (const auto* so : {&alone, &together}) {
    ASSERT_FALSE(*so);
    EXPECT_NE(so->error().what.find("cut"), std::string::npos) << so->error().what;
    EXPECT_NE(so->error().what.find("nobody listens"), std::string::npos) << so->error().what;
  }
}

TEST_F(row_stores, a_record_that_is_too_long_to_be_read_fails_its_own_name_and_no_other) {
  server_.rows["long"].there = server_.rows["long"].too_long = true;
  adding one, long_one, other;
  const state_store::step steps[] = {{"a", &one}, {"long", &long_one}, {"z", &other}};
  const auto outcomes = store_.transact(steps);
  EXPECT_TRUE(outcomes[0]);
  ASSERT_FALSE(outcomes[1]);
  EXPECT_EQ(outcomes[1].error().code, errc::corrupt);
  EXPECT_TRUE(outcomes[2]);
  EXPECT_EQ(record("a") + record("z"), "xx");
  EXPECT_EQ(long_one.asked, 0);
  const auto together = store_.transact_together(std::span(steps).subspan(1),
                                                 [](auto) { return state_store::verdict::go_on; });
  EXPECT_EQ(together.error().code, errc::corrupt);
  EXPECT_EQ(record("z"), "x");
}

/// Makes a record of this many bytes.
class filling final : public transition {
 public:
  explicit filling(std::size_t bytes) : next_(bytes, 'x') {}
  const std::string* apply(std::string_view, const moment&) override { return &next_; }

 private:
  const std::string next_;
};

// Nobody could read such a record: the name would be lost for good.
TEST_F(row_stores, a_record_that_would_be_too_long_is_not_written) {
  EXPECT_TRUE(add());
  adding one;
  filling too_much(longest_read + 1), just_fits(longest_read);
  const state_store::step steps[] = {{"a", &one}, {"n", &too_much}};
  for (int guessed_or_read = 0; guessed_or_read < 2; ++guessed_or_read) {
    const auto outcomes = store_.transact(steps);
    EXPECT_TRUE(outcomes[0]);
    ASSERT_FALSE(outcomes[1]);
    EXPECT_EQ(outcomes[1].error().code, errc::overloaded);
    EXPECT_EQ(record(), "x");
    server_.rows.find("n")->second.version++;
  }
  const auto together =
      store_.transact_together(steps, [](auto) { return state_store::verdict::go_on; });
  EXPECT_EQ(together.error().code, errc::overloaded);
  EXPECT_EQ(record("a"), "xx");
  const state_store::step fits{"n", &just_fits};
  EXPECT_TRUE(store_.transact(std::span(&fits, 1)).front());
}

// MariaDB refuses more than 16 MiB at once, and a record doubles in size on its way.
TEST_F(row_stores, a_batch_is_split_into_parts_that_the_server_accepts) {
  constexpr std::size_t each = 1U << 20;
  std::vector<std::string> names;
  std::vector<filling> changes(20, filling(each));
  for (std::size_t i = 0; i < changes.size(); ++i) names.push_back(std::to_string(100 + i));
  std::vector<state_store::step> steps;
  for (std::size_t i = 0; i < changes.size(); ++i) steps.push_back({names[i], &changes[i]});
  for (const auto& each_of_them : store_.transact(steps)) EXPECT_TRUE(each_of_them);
  EXPECT_EQ(server_.rows.size(), changes.size());
  EXPECT_LE(server_.most_at_once, 8 * each);
  EXPECT_GT(server_.most_at_once, each) << "what fits goes together";
}

TEST_F(row_stores, two_changes_of_one_name_in_a_batch_are_both_made) {
  adding first, second, other;
  const state_store::step steps[] = {{"n", &first}, {"a", &other}, {"n", &second}};
  for (const auto& each : store_.transact(steps)) EXPECT_TRUE(each);
  EXPECT_EQ(record("n"), "xx");
  EXPECT_EQ(record("a"), "x");
}

// ---- several names in one transaction

TEST_F(row_stores, several_names_are_changed_in_one_transaction_and_locked_in_their_order) {
  adding first, second;
  const state_store::step steps[] = {{"n", &first}, {"a", &second}};
  EXPECT_TRUE(store_.transact_together(steps, [](auto) { return state_store::verdict::go_on; }));
  EXPECT_EQ(server_.locks, 1);
  EXPECT_EQ(server_.locked, (std::vector<std::string>{"a", "n"}));
  EXPECT_EQ(record("n") + record("a"), "xx");
  EXPECT_GT(server_.unlocked_until, server_.now_at);
  EXPECT_LE(server_.unlocked_until, server_.now_at + 5'000'000);
  EXPECT_EQ(server_.reads + server_.writes, 0);
  EXPECT_TRUE(add("n"));
  EXPECT_EQ(record("n"), "xx");
}

TEST_F(row_stores, a_wait_for_the_lock_of_another_name_takes_nothing_off_the_time_that_is_left) {
  server_.lock_takes = 10'000'000;
  adding first, second;
  const state_store::step steps[] = {{"a", &first}, {"n", &second}};
  EXPECT_TRUE(store_.transact_together(steps, [](auto) { return state_store::verdict::go_on; }));
  EXPECT_GT(server_.unlocked_until, server_.now_at) << "it would be refused as too late";
  EXPECT_LE(server_.unlocked_until, server_.now_at + 5'000'000);
}

TEST_F(row_stores, an_undone_change_has_no_effect) {
  EXPECT_TRUE(add("n"));
  adding first, second;
  const state_store::step steps[] = {{"n", &first}, {"m", &second}};
  EXPECT_TRUE(store_.transact_together(steps, [](auto i) {
    return i == 0 ? state_store::verdict::go_on : state_store::verdict::undo;
  }));
  EXPECT_EQ(record("n"), "x");
}

TEST_F(row_stores, a_change_after_the_last_kept_one_is_skipped_and_leaves_no_row) {
  adding first, second;
  const state_store::step steps[] = {{"a", &first}, {"b", &second}};
  EXPECT_TRUE(store_.transact_together(steps, [](auto) { return state_store::verdict::keep; }));
  EXPECT_EQ(record("a"), "x");
  EXPECT_EQ(second.asked, 0);
  EXPECT_FALSE(server_.rows.contains("b"));
}

TEST_F(row_stores, a_transaction_that_conflicts_with_others_is_repeated) {
  server_.outrun = 3;
  adding change;
  const state_store::step steps[] = {{"n", &change}};
  EXPECT_TRUE(store_.transact_together(steps, [](auto) { return state_store::verdict::go_on; }));
  EXPECT_EQ(server_.locks, 4);
  EXPECT_EQ(record(), "x");
  server_.outrun = 1000;
  const auto never =
      store_.transact_together(steps, [](auto) { return state_store::verdict::go_on; });
  ASSERT_FALSE(never);
  EXPECT_FALSE(never.error().outcome_unknown);
  EXPECT_EQ(never.error().code, errc::unavailable) << "nobody has said that the lock is held";
}

// A change that was overtaken twice, and then undone in favour of others.
TEST_F(row_stores, a_change_that_conflicts_with_others_is_repeated) {
  EXPECT_TRUE(add());
  server_.others = 2;
  server_.outrun = 1;
  EXPECT_TRUE(add());
  EXPECT_EQ(record(), "somebody elsex");
  EXPECT_EQ(server_.links, 1);
  server_.others = server_.outrun = 1000;
  const auto never = add();
  ASSERT_FALSE(never);
  EXPECT_EQ(never.error().code, errc::unavailable) << "nobody has said that the lock is held";
  EXPECT_FALSE(never.error().outcome_unknown);
  EXPECT_EQ(server_.links, 1);
}

// A server may leave it to the client to end the transaction.
TEST_F(row_stores, a_conflict_that_ends_its_connection_repeats_only_that_change) {
  EXPECT_TRUE(add());
  store_.use(std::make_unique<fake_link>(server_));
  server_.others = 1000;
  server_.outrun = 3;
  server_.outrun_breaks = true;
  EXPECT_TRUE(add());
  EXPECT_EQ(server_.locks, 4);
  EXPECT_EQ(server_.links, 4) << "each that was there, and two more";
}

/// Makes the name free.
class freeing final : public transition {
 public:
  const std::string* apply(std::string_view, const moment&) override { return &next_; }

 private:
  const std::string next_ = "[1,\"mutex\",0,7,[],[]]";
};

TEST_F(row_stores, names_that_were_freed_together_are_swept_over_the_only_connection) {
  row_store alone{[this](boot_time) -> result<std::unique_ptr<row_link>> {
                    return std::unique_ptr<row_link>(std::make_unique<fake_link>(server_));
                  },
                  1, 5s};
  freeing change;
  for (int i = 0; i < 300; ++i) {
    const auto name = std::to_string(i);
    const state_store::step steps[] = {{name, &change}};
    EXPECT_TRUE(alone.transact_together(steps, [](auto) { return state_store::verdict::go_on; }));
  }
  EXPECT_EQ(server_.sweeps, 1);
}

TEST_F(row_stores, a_commit_whose_answer_was_lost_is_not_written_again) {
  server_.break_after_unlock = true;
  adding first, second, behind;
  const state_store::step steps[] = {{"n", &first}, {"m", &second}, {"o", &behind}};
  EXPECT_TRUE(store_.transact_together(steps, [](auto i) {
    return i == 1 ? state_store::verdict::keep : state_store::verdict::go_on;
  }));
  EXPECT_EQ(record("n") + record("m"), "xx");
  EXPECT_EQ(first.asked + second.asked, 2);
  EXPECT_EQ(behind.in_doubt + first.in_doubt + second.in_doubt, 0);
}

// Other clients' records may look alike, as the buckets of a limiter do: every record of the commit
// must be there.
TEST_F(row_stores, a_commit_overwritten_by_others_is_repeated_as_possibly_done) {
  server_.break_after_unlock = true;
  server_.once_broken = [this] { server_.rows.find("m")->second.record = "somebody else"; };
  adding first, second;
  const state_store::step steps[] = {{"n", &first}, {"m", &second}};
  EXPECT_TRUE(store_.transact_together(steps, [](auto) { return state_store::verdict::go_on; }));
  EXPECT_EQ(first.asked, 2);
  EXPECT_EQ(first.in_doubt, 1);
  EXPECT_EQ(second.in_doubt, 1);
  EXPECT_EQ(record("m"), "somebody elsex");
}

/// A store whose requests have no time for a second attempt, with two idle connections, both
/// silent.
class after_one_time_out : public row_stores {
 protected:
  void SetUp() override {
    server_.once_read = [this] { EXPECT_TRUE(add("other")); };
    ASSERT_TRUE(add("n"));
    ASSERT_EQ(server_.links, 2);
    server_.silent_up_to = 2;
  }
  status add(std::string_view name) {
    adding change;
    const state_store::step step{name, &change};
    return std::move(hasty_.transact(std::span(&step, 1)).front());
  }
  status add_together() {
    adding change;
    const state_store::step step{"n", &change};
    return hasty_.transact_together({&step, 1}, [](auto) { return state_store::verdict::go_on; });
  }

  row_store hasty_{[this](boot_time) -> result<std::unique_ptr<row_link>> {
                     return std::unique_ptr<row_link>(std::make_unique<fake_link>(server_));
                   },
                   2, 0s};
};

TEST_F(after_one_time_out, of_a_change_no_other_idle_connection_costs_another_one) {
  EXPECT_FALSE(add("new"));
  EXPECT_TRUE(add("new"));
}

TEST_F(after_one_time_out, of_a_transaction_no_other_idle_connection_costs_another_one) {
  EXPECT_FALSE(add_together());
  EXPECT_TRUE(add("new"));
}

TEST_F(after_one_time_out, of_a_list_no_other_idle_connection_costs_another_one) {
  EXPECT_FALSE(hasty_.entries());
  EXPECT_TRUE(hasty_.entries());
}

/// A session that wrote the rows of "a", "b" and "c" last. It has one connection, which is in use
/// until the server answers.
class busy_stores : public row_stores {
 protected:
  struct outcome {
    status how = done{};
    int asked = 0, in_doubt = 0;
  };

  busy_stores() {
    for (const auto* name : {"a", "b", "c"}) EXPECT_TRUE(change(name).how);
    std::promise<void> in_use;
    server_.once_read = [&] { in_use.set_value(), answers_.get_future().wait(); };
    first_ = harness::concurrently([this] { return bool(one_.time()); });
    in_use.get_future().wait();
    server_.writes = server_.reads = 0;
    server_.replaced.clear();
  }
  outcome change(const std::string& name) {
    adding mine;
    const state_store::step step{name, &mine};
    auto how = std::move(one_.transact(std::span(&step, 1)).front());
    return {std::move(how), mine.asked, mine.in_doubt};
  }
  /// A change whose thread waits for the connection.
  std::future<outcome> queue(const std::string& name) {
    const int before = clock_.waits;
    auto later = harness::concurrently([this, name] { return change(name); });
    harness::eventually("it waits", [&] { return clock_.waits > before; });
    return later;
  }
  void answer() {
    answers_.set_value();
    EXPECT_TRUE(first_.get());
  }
  /// The same; returns how these changes ended.
  template <class... Future>
  std::vector<outcome> answer_and_wait_for(Future&... changes) {
    answer();
    return {changes.get()...};
  }

  counting_waits clock_;
  row_store one_{[this](boot_time) -> result<std::unique_ptr<row_link>> {
                   return std::unique_ptr<row_link>(std::make_unique<fake_link>(server_));
                 },
                 1, 30s, clock_};
  std::promise<void> answers_;
  std::future<bool> first_;
};

TEST_F(busy_stores, send_the_changes_of_waiting_threads_together) {
  auto c = queue("c"), b = queue("b"), a = queue("a");
  for (const auto& got : answer_and_wait_for(a, b, c)) {
    EXPECT_TRUE(got.how);
    EXPECT_EQ(got.asked, 1);
  }
  EXPECT_EQ(server_.writes, 1);
  ASSERT_EQ(server_.replaced.size(), 3U);
  EXPECT_EQ(server_.replaced[0].name + server_.replaced[1].name + server_.replaced[2].name, "abc")
      << "in the order of the names, so that two sessions never wait for each other";
  EXPECT_EQ(record("a") + record("b") + record("c"), "xxxxxx");
}

TEST_F(busy_stores, send_one_change_of_a_name_at_a_time) {
  auto a = queue("a"), again = queue("a"), b = queue("b");
  answer();
  EXPECT_TRUE(a.get().how);
  EXPECT_TRUE(b.get().how);
  EXPECT_EQ(again.get().asked, 1);
  EXPECT_EQ(record("a"), "xxx");
  EXPECT_EQ(server_.writes, 2);
}

// Its change needs a round trip more, which the others would wait for.
TEST_F(busy_stores, leave_a_name_that_must_be_read_to_its_own_thread) {
  auto a = queue("a"), unknown = queue("unknown"), b = queue("b");
  answer();
  EXPECT_TRUE(a.get().how);
  EXPECT_TRUE(b.get().how);
  EXPECT_EQ(unknown.get().asked, 1);
  EXPECT_EQ(server_.writes, 2);
  ASSERT_EQ(server_.replaced.size(), 3U);
  EXPECT_EQ(server_.replaced[1].name, "b");
}

TEST_F(busy_stores, let_a_thread_decide_again_that_another_session_has_overtaken) {
  auto a = queue("a"), b = queue("b");
  server_.rows["b"] = {true, server_.rows["b"].version + 1, "other", 0, 0};
  answer();
  EXPECT_EQ(a.get().asked, 1);
  EXPECT_EQ(b.get().asked, 2);
  EXPECT_EQ(record("b"), "otherx");
}

TEST_F(busy_stores, look_up_each_change_whose_answer_was_lost) {
  auto a = queue("a"), b = queue("b"), c = queue("c");
  server_.break_after_writes = 1;
  for (const auto& got : answer_and_wait_for(a, b, c)) {
    EXPECT_TRUE(got.how);
    EXPECT_EQ(got.asked, 1);
    EXPECT_EQ(got.in_doubt, 0);
  }
  EXPECT_EQ(record("a") + record("b") + record("c"), "xxxxxx");
  EXPECT_EQ(server_.writes, 4) << "and one each that a standby has to confirm";
}

TEST_F(busy_stores, keep_each_change_in_doubt_although_a_lagging_server_refuses_it) {
  auto a = queue("a"), b = queue("b");
  server_.lagging = server_.rows;
  server_.break_after_writes = 1;
  for (const auto& got : answer_and_wait_for(a, b)) {
    ASSERT_FALSE(got.how);
    EXPECT_TRUE(got.how.error().outcome_unknown) << got.how.error().what;
  }
}

// The thread that takes a change along must not fail for it.
TEST_F(busy_stores, leave_a_change_that_lacks_memory_to_its_own_thread) {
  class greedy final : public transition {
   public:
    const std::string* apply(std::string_view record, const moment& now) override {
      if (std::this_thread::get_id() != mine_) throw std::bad_alloc();
      return adds_.apply(record, now);
    }

   private:
    const std::thread::id mine_ = std::this_thread::get_id();
    adding adds_;
  };
  auto a = queue("a");
  const int before = clock_.waits;
  auto b = harness::concurrently([this] {
    greedy change;
    const state_store::step step{"b", &change};
    return std::move(one_.transact(std::span(&step, 1)).front());
  });
  harness::eventually("it waits", [&] { return clock_.waits > before; });
  auto c = queue("c");
  answer();
  EXPECT_TRUE(a.get().how);
  EXPECT_TRUE(b.get());
  EXPECT_TRUE(c.get().how);
  EXPECT_EQ(record("a") + record("b") + record("c"), "xxxxxx");
  EXPECT_EQ(server_.writes, 2) << "c went with a";
}

// One row that another client has locked must not fail the others.
TEST_F(busy_stores, send_each_change_alone_after_the_server_has_refused_all) {
  auto a = queue("a"), b = queue("b"), c = queue("c");
  server_.refused = 1;
  for (const auto& got : answer_and_wait_for(a, b, c)) {
    EXPECT_TRUE(got.how);
    EXPECT_EQ(got.in_doubt, 0);
  }
  EXPECT_EQ(server_.writes, 4);
  EXPECT_EQ(server_.reads, 3) << "nothing that was refused is guessed again";
}

TEST_F(row_stores, a_listing_continues_after_a_given_name) {
  for (const char* const name : {"a", "b", "c"}) ASSERT_TRUE(add(name));
  const auto some = store_.walk("a", 1).value();
  ASSERT_EQ(some.size(), 1U);
  EXPECT_EQ(some[0].name, "b");
  EXPECT_TRUE(store_.walk("c", 1).value().empty());
}

}  // namespace
}  // namespace sql_test
