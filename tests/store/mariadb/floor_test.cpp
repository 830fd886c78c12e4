#include <future>

#include "fixture.hpp"
#include "store/mariadb/link.hpp"

// What a row may be made with, while others take, give back and sweep the same name.
namespace mariadb_test {
namespace {

using namespace std::chrono_literals;
using harness::eventually;
using holdfast::boot_clock;
using holdfast::store::sql::replacement;
using holdfast::store::sql::row;
namespace my = holdfast::store::mariadb;

class mariadb_floor : public mariadb_store {
 protected:
  std::unique_ptr<my::link> connect() const {
    auto o = *my::parse_address("mariadb", url().substr(url().find("//")));
    return std::move(*my::link::open(o, tables_));
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

  const holdfast::session made_ = open();
  const my::tables tables_{database_};
  const std::unique_ptr<my::link> link_ = connect();
};

TEST_F(mariadb_floor, a_name_that_was_swept_after_it_was_read_is_not_made) {
  const row before = read("m");
  {
    auto s = open();
    holdfast::mutex m{s, "m"};
    m.lock(), m.unlock();
  }  // sweeps
  ASSERT_EQ(rows(), "0");
  EXPECT_FALSE(replace({first("m", before)}));
  EXPECT_FALSE(replace({first("l", read("l")), first("m", before)})) << "nor among others";
  EXPECT_EQ(rows(), "1");
  EXPECT_TRUE(replace({first("m", read("m"))}));
}

TEST_F(mariadb_floor, a_name_that_is_being_swept_is_not_made_with_what_was_read_before) {
  const row before = read("m");
  ASSERT_TRUE(replace({first("m", read("m"))}));
  const client sweeper{port()};
  sweeper.ask("start transaction; update " + table("holdfast_meta") +
              " set fence_floor = " + std::to_string(before.now_at + 1'000'000) + "; delete from " +
              table("holdfast_records"));
  auto made = std::async(std::launch::async, [&] { return replace({first("m", before)}); });
  eventually("somebody waits for a lock", [&] {
    return ask("select count(*) from information_schema.processlist where id = " +
               std::to_string(link_->id()) + " and state <> ''") != "0";
  });
  sweeper.ask("commit");
  EXPECT_FALSE(made.get());
  EXPECT_EQ(rows(), "0");
}

TEST_F(mariadb_floor, a_sweep_keeps_all_versions_below_what_comes_next) {
  ask("insert into " + table("holdfast_records") +
      R"( values ('m', 9000000000000000000, '[1,"mutex",0,7,[],[]]'))");
  const std::string names[] = {"m"};
  ASSERT_TRUE(link_->sweep(names, soon()));
  EXPECT_GT(read("m").fence_floor, 9'000'000'000'000'000'000);
}

}  // namespace
}  // namespace mariadb_test
