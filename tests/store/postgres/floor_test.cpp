#include <future>

#include "fixture.hpp"
#include "store/postgres/link.hpp"

// What a row may be made with, while others take, give back and sweep the same name.
namespace postgres_test {
namespace {

using namespace std::chrono_literals;
using harness::eventually;
using holdfast::boot_clock;
using holdfast::store::postgres::statements;
using holdfast::store::sql::replacement;
using holdfast::store::sql::row;
using holdfast::store::sql::row_link;
namespace pg = holdfast::store::postgres;

class postgres_floor : public postgres_store {
 protected:
  /// One connection of a store.
  std::unique_ptr<row_link> connect() const {
    const auto to = *pg::parse_address(base_.substr(base_.find("//")));
    return std::move(*pg::link::over(std::move(*pg::wire::open(to, soon())), sql_, 60s));
  }
  static holdfast::boot_time soon() { return boot_clock::now() + 60s; }
  row read(std::string_view name) const {
    const std::string_view names[] = {name};
    return (*link_->read(names, soon())).front();
  }
  /// What would be written where no row was.
  static replacement first(std::string_view name, const row& seen) {
    return {name, false, std::max(seen.now_at, seen.fence_floor), "[1,\"mutex\",0,7,[],[]]", {}};
  }
  bool replace(std::vector<replacement> all) const {
    const auto outcomes = link_->replace(all, soon());
    EXPECT_TRUE(outcomes) << outcomes.error().what;
    return outcomes && outcomes->back().done;
  }
  std::string rows() const { return ask("select count(*) from " + table("holdfast_records")); }
  void until_somebody_waits_for_a_lock() const {
    eventually("somebody waits for a lock of this schema", [&] {
      return ask("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query "
                 "like '%" +
                 schema_ + "%'") != "0";
    });
  }

  const holdfast::session made_ = open("&listen=never");
  const statements sql_{schema_};
  const std::unique_ptr<row_link> link_ = connect();
};

TEST_F(postgres_floor, a_name_that_was_swept_after_it_was_read_is_not_made) {
  const row before = read("m");
  {
    auto s = open("&listen=never");
    holdfast::mutex m{s, "m"};
    m.lock(), m.unlock();
  }  // sweeps
  ASSERT_EQ(rows(), "0");
  EXPECT_FALSE(replace({first("m", before)}));
  EXPECT_FALSE(replace({first("l", read("l")), first("m", before)})) << "nor among others";
  EXPECT_EQ(rows(), "1");
  EXPECT_TRUE(replace({first("m", read("m"))}));
}

// The row is still there for who makes one, and the floor is the old one: both go in one moment.
TEST_F(postgres_floor, a_name_that_is_being_swept_is_not_made_with_what_was_read_before) {
  const row before = read("m");
  ASSERT_TRUE(replace({first("m", read("m"))}));
  const client sweeper{base_};
  sweeper.ask("begin; update " + table("holdfast_meta") +
              " set fence_floor = " + std::to_string(before.now_at + 1'000'000) + "; delete from " +
              table("holdfast_records"));
  auto made = std::async(std::launch::async, [&] { return replace({first("m", before)}); });
  until_somebody_waits_for_a_lock();
  sweeper.ask("commit");
  EXPECT_FALSE(made.get());
  EXPECT_EQ(rows(), "0");
}

TEST_F(postgres_floor, a_sweep_keeps_all_versions_below_what_comes_next) {
  ask("insert into " + table("holdfast_records") +
      R"( values ('m', 9000000000000000000, '[1,"mutex",0,7,[],[]]'))");
  const std::string names[] = {"m"};
  ASSERT_TRUE(link_->sweep(names, soon()));
  EXPECT_GT(read("m").fence_floor, 9'000'000'000'000'000'000);
}

TEST_F(postgres_floor, a_row_that_goes_while_its_lock_is_waited_for_is_made_anew) {
  ASSERT_TRUE(replace({first("m", read("m"))}));
  const client other{base_};
  other.ask("begin; select * from " + table("holdfast_records") + " for update");
  const std::string_view names[] = {"m"};
  auto locked = std::async(std::launch::async, [&] { return link_->lock(names, soon()); });
  until_somebody_waits_for_a_lock();
  other.ask("delete from " + table("holdfast_records") + "; commit");
  const auto found = locked.get();
  ASSERT_TRUE(found) << found.error().what;
  EXPECT_EQ(found->front().record, "");
  EXPECT_TRUE(link_->unlock({}, soon()));
}

}  // namespace
}  // namespace postgres_test
