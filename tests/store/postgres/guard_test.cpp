#include <holdfast/guard.hpp>

#include "fixture.hpp"
#include "harness/stale_holder.hpp"

namespace postgres_test {
namespace {

class postgres_guard : public postgres_store {
 protected:
  std::string answer(const std::string& statement) const {
    return ask("with done as (" + statement + " returning 1) select count(*) from done");
  }
};

TEST_F(postgres_guard, the_write_of_a_former_holder_changes_no_row) {
  (void)ask("create schema \"" + schema_ + "\"; create table " + table("stock") +
            " (id int primary key, left_over int not null, fence bigint not null default 0); "
            "insert into " +
            table("stock") + " values (7, 10)");
  const auto write = [&](std::uint64_t fence) {
    const client own(base_);
    return own.ask("with done as (" +
                   holdfast::guard::fenced_update(table("stock"), "left_over = left_over - 1",
                                                  "id = 7", fence) +
                   " returning 1) select count(*) from done") == "1";
  };
  const auto v = harness::write_after_a_pause(url(), write);
  EXPECT_TRUE(v.successor);
  EXPECT_FALSE(v.stale);
  EXPECT_EQ(ask("select left_over from " + table("stock")), "9");
}

TEST_F(postgres_guard, the_optimistic_loop_loses_no_update) {
  (void)ask("create schema \"" + schema_ + "\"; create table " + table("counter") +
            " (n int not null, version int not null); insert into " + table("counter") +
            " values (0, 0)");
  int overtaken = 5;
  const auto seen = holdfast::guard::compare_and_update(
      [&] { return ask("select n || ',' || version from " + table("counter")); },
      [&](const std::string& at) {
        if (overtaken-- > 0)
          (void)ask("update " + table("counter") + " set n = n + 1, version = version + 1");
        const auto n = at.substr(0, at.find(',')), version = at.substr(at.find(',') + 1);
        return answer("update " + table("counter") + " set n = " + n +
                      " + 1, version = version + 1 where version = " + version) == "1";
      });
  EXPECT_EQ(seen, "5,5");
  EXPECT_EQ(ask("select n || ',' || version from " + table("counter")), "6,6");
}

}  // namespace
}  // namespace postgres_test
