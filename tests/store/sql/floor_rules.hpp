#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <holdfast/holdfast.hpp>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "harness/concurrently.hpp"
#include "harness/eventually.hpp"
#include "store/sql/row_link.hpp"

namespace sql_test {

using holdfast::store::sql::replacement;
using holdfast::store::sql::row;
using holdfast::store::sql::row_link;

/// How a row may be made and replaced while others acquire, release and sweep the same name; each
/// server has its own statements. `Store` is a fixture with an empty store; a derived class sets
/// link_, one connection of that store.
template <class Store>
class floor_rules : public Store {
 protected:
  static holdfast::boot_time soon() {
    return holdfast::boot_clock::now() + std::chrono::minutes(1);
  }
  row read(std::string_view name) const {
    const std::string_view names[] = {name};
    return (*link_->read(names, soon())).front();
  }
  /// The replacement to write where no row was.
  static replacement first(std::string_view name, const row& seen) {
    return {name, false, std::max(seen.now_at, seen.fence_floor), "[1,\"mutex\",0,7,[],[]]", {}};
  }
  bool replace(std::vector<replacement> all) const {
    const auto outcomes = link_->replace(all, soon());
    EXPECT_TRUE(outcomes) << outcomes.error().what;
    return outcomes && outcomes->back().done;
  }
  static replacement guess_at(std::int64_t now_at, std::int64_t version, bool asks_time = false) {
    replacement r{"m", true, version, R"([1,"mutex",0,8,[],[]])", {}};
    r.assumed_now = now_at;
    r.asks_time = asks_time;
    return r;
  }
  std::string rows() const {
    return this->ask("select count(*) from " + this->table("holdfast_records"));
  }

  void expect_that_what_was_swept_is_not_made() const {
    const row before = read("m");
    {
      auto s = this->open();
      holdfast::mutex m{s, "m"};
      m.lock(), m.unlock();
    }
    harness::eventually("it has swept", [&] { return rows() == "0"; });
    EXPECT_FALSE(replace({first("m", before)}));
    EXPECT_FALSE(replace({first("l", read("l")), first("m", before)})) << "nor among others";
    EXPECT_EQ(rows(), "1");
    EXPECT_TRUE(replace({first("m", read("m"))}));
  }

  /// A removed latch leaves nothing behind.
  void expect_that_what_was_removed_is_not_made() const {
    const row before = read("l");
    {
      auto s = this->open();
      holdfast::latch l{s, "l", 2};
      std::stop_source enough;
      auto wait = async_wait(l, {}, enough.get_token()).future();
      harness::eventually("it is made", [&] { return rows() == "1"; });
      enough.request_stop();
      EXPECT_FALSE(wait.get());
      l.remove();
      EXPECT_TRUE(s.names().empty());
    }
    harness::eventually("it has swept", [&] { return rows() == "0"; });
    EXPECT_FALSE(replace({first("l", before)}));
    EXPECT_TRUE(replace({first("l", read("l"))}));
  }

  /// The row is still there for a request that makes one, and the floor is the old one: both change
  /// at the same moment.
  template <class Client>
  void expect_that_what_is_being_swept_is_not_made(
      const Client& sweeper, const std::function<void()>& until_it_waits) const {
    const row before = read("m");
    ASSERT_TRUE(replace({first("m", read("m"))}));
    sweeper.ask("begin; update " + this->table("holdfast_meta") +
                " set fence_floor = " + std::to_string(before.now_at + 1'000'000) +
                "; delete from " + this->table("holdfast_records"));
    auto made = harness::concurrently([&] { return replace({first("m", before)}); });
    until_it_waits();
    sweeper.ask("commit");
    EXPECT_FALSE(made.get());
    EXPECT_EQ(rows(), "0");
  }

  void expect_that_a_sweep_keeps_all_versions_below_what_comes_next() const {
    this->ask("insert into " + this->table("holdfast_records") +
              R"( values ('m', 9000000000000000000, '[1,"mutex",0,7,[],[]]'))");
    const std::string names[] = {"m"};
    ASSERT_TRUE(link_->sweep(names, soon()));
    EXPECT_GT(read("m").fence_floor, 9'000'000'000'000'000'000);
  }

  /// A repeated request finds the original there.
  void expect_that_a_sweep_leaves_what_is_remembered() const {
    this->ask("insert into " + this->table("holdfast_records") +
              R"( values ('limit', 7, '[1,"rate_limiter",0,7,[],[],[],[["0a",9]]]'), )" +
              R"(('latch', 7, '[1,"latch",0,0,0,[["0a",9]],[]]'))");
    const std::string names[] = {"limit", "latch"};
    ASSERT_TRUE(link_->sweep(names, soon()));
    EXPECT_EQ(rows(), "2");
  }

  void expect_that_a_walk_goes_on_behind_a_name() const {
    this->ask("insert into " + this->table("holdfast_records") +
              R"( values ('a', 7, '"x"'), ('b', 7, '"y"'), ('c', 7, '"z"'))");
    const auto behind = [&](std::string_view name, std::size_t most) {
      std::string met;
      for (const auto& e : link_->entries_behind(name, most, soon()).value())
        met += e.name + e.record;
      return met;
    };
    EXPECT_EQ(behind("", 2), R"(a"x"b"y")");
    EXPECT_EQ(behind("b", 2), R"(c"z")");
    EXPECT_EQ(behind("c", 2), "");
  }

  /// A downgrade whose answer was lost, and which was repeated; then another owner became the
  /// writer.
  void expect_that_what_comes_late_changes_nothing() const {
    ASSERT_TRUE(replace({first("m", read("m"))}));
    const auto next = [&](std::string_view record) {
      return replacement{"m", true, read("m").version, record, {}};
    };
    const replacement late = next(R"([1,"shared_mutex",0,8,[],[]])");
    ASSERT_TRUE(replace({next(R"([1,"shared_mutex",0,8,[],[]])")}));
    ASSERT_TRUE(replace({next(R"([1,"shared_mutex",0,9,[],[]])")}));
    EXPECT_FALSE(replace({late}));
    EXPECT_NE(read("m").record.find(",9,"), std::string::npos);
  }

  /// Two successful guesses may differ by 2 ms: a lease's margin covers that.
  void expect_that_a_guess_of_another_time_changes_nothing() const {
    ASSERT_TRUE(replace({first("m", read("m"))}));
    for (const bool asks : {false, true}) {
      for (const std::int64_t away : {-60'000'000, -2'000, 60'000'000}) {
        const row there = read("m");
        EXPECT_FALSE(replace({guess_at(there.now_at + away, there.version, asks)})) << away;
      }
    }
  }

  /// At the right time. (A test cannot limit how long the request is on its way.)
  void expect_that_a_guess_of_another_version_changes_nothing() const {
    ASSERT_TRUE(replace({first("m", read("m"))}));
    const row there = read("m");
    for (const std::int64_t version : {there.version - 1, there.version + 1}) {
      for (int i = 0; i < 20; ++i) EXPECT_FALSE(replace({guess_at(read("m").now_at, version)}));
    }
    harness::eventually("a guess is right",
                        [&] { return replace({guess_at(read("m").now_at, there.version)}); });
    EXPECT_EQ(read("m").version, there.version + 1);
  }

  /// The request was delayed in the network until its caller had given up, and had released what it
  /// may have got.
  void expect_that_what_comes_after_its_time_changes_nothing() const {
    const auto at = [](replacement r, std::int64_t until) {
      r.until_at = until;
      return r;
    };
    EXPECT_FALSE(replace({at(first("m", read("m")), read("m").now_at - 1)}));
    EXPECT_EQ(rows(), "0");
    constexpr std::int64_t second = 1'000'000;
    EXPECT_TRUE(replace({at(first("m", read("m")), read("m").now_at + 60 * second)}));
    const row there = read("m");
    const replacement r{"m", true, there.version, R"([1,"mutex",0,8,[],[]])", {}};
    EXPECT_FALSE(replace({at(r, there.now_at - 1)}));
    EXPECT_EQ(read("m").version, there.version);
    EXPECT_TRUE(replace({at(r, there.now_at + 60 * second)}));
  }

  /// The same for a change under the row's lock: the end of its transaction came late.
  void expect_that_a_transaction_that_ends_after_its_time_is_undone() const {
    const std::string_view names[] = {"m"};
    const holdfast::store::sql::rewrite next{"m", R"([1,"mutex",0,8,[],[]])"};
    auto seen = link_->lock(names, soon());
    ASSERT_TRUE(seen) << seen.error().what;
    const auto late = link_->unlock(std::span(&next, 1), seen->front().now_at - 1, soon());
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, holdfast::errc::timed_out) << late.error().what;
    EXPECT_FALSE(link_->usable()) << "its transaction is open";
  }

  /// After that, over another connection.
  void expect_that_a_transaction_that_ends_in_time_is_not() const {
    EXPECT_EQ(rows(), "0");
    const std::string_view names[] = {"m"};
    const holdfast::store::sql::rewrite next{"m", R"([1,"mutex",0,8,[],[]])"};
    const auto seen = link_->lock(names, soon());
    ASSERT_TRUE(seen) << seen.error().what;
    const auto until = seen->front().now_at + 60'000'000;
    EXPECT_TRUE(link_->unlock(std::span(&next, 1), until, soon()));
    EXPECT_EQ(read("m").record, next.record);
  }

  std::unique_ptr<row_link> link_{};
};

}  // namespace sql_test
