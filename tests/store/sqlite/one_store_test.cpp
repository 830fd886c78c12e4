#include <filesystem>

#include "fixture.hpp"
#include "harness/failing.hpp"
#include "store/sql/one_store_rules.hpp"

namespace sqlite_test {
namespace {

TEST_F(sqlite_store, of_a_path_with_a_link_has_the_url_of_the_file) {
  const auto s = holdfast::open("sqlite:" + path());
  std::filesystem::create_directory_symlink(std::filesystem::path(path()).parent_path(),
                                            path("beside"));
  EXPECT_EQ(s.url(), holdfast::open("sqlite:" + path("beside/locks.db")).url());
}

// A second hard link would not work: SQLite's log has the name by which the file was opened.
TEST_F(sqlite_store, whose_folder_moved_is_the_same_node_of_a_quorum) {
  std::filesystem::create_directory(path("before"));
  const auto s = holdfast::open("sqlite:" + path("before/locks.db"));
  std::filesystem::rename(path("before"), path("after"));
  std::filesystem::create_directory_symlink(path("after"), path("before"));
  sql_test::expect_one_store(s, holdfast::open("sqlite:" + path("after/locks.db")));
}

TEST_F(sqlite_store, that_is_a_copy_of_another_is_a_node_of_its_own) {
  {
    (void)holdfast::open("sqlite:" + path());
  }
  std::filesystem::copy_file(path(), path("copy.db"));
  sql_test::expect_two_stores(holdfast::open("sqlite:" + path()),
                              holdfast::open("sqlite:" + path("copy.db")));
}

/// SQLite has no repeat().
const std::string far_too_long =
    "INSERT INTO holdfast_locks VALUES ('long', '[1,\"mutex\",\"' || "
    "hex(zeroblob(10000000)) || '\"]')";
constexpr sqlite3_int64 longest_of_ours = 16 << 20;

TEST_F(sqlite_store, does_not_read_a_record_that_is_far_too_long) {
  const auto s = holdfast::open("sqlite:" + path());
  shell(path()).run(far_too_long);
  const auto before = sqlite3_memory_used();
  sqlite3_memory_highwater(1);
  sql_test::expect_it_is_not_read(s, "long");
  EXPECT_LT(sqlite3_memory_highwater(0) - before, longest_of_ours);
}

TEST_F(sqlite_store, that_is_only_read_does_not_read_it_either) {
  (void)holdfast::open("sqlite:" + path());
  shell(path()).run(far_too_long);
  const auto s = holdfast::open("sqlite:" + path() + "?access=read");
  const auto refused = harness::outcome_of([&] { (void)s.show("long"); });
  EXPECT_EQ(refused.reason, errc::corrupt);
  EXPECT_TRUE(harness::contains(refused.text, "16 MiB")) << refused.text;
  EXPECT_EQ(s.names(), std::vector<std::string>{"long"});
}

TEST_F(sqlite_store, with_a_record_that_is_far_too_long_opens_after_a_boot) {
  {
    (void)holdfast::open("sqlite:" + path());
  }
  shell operators(path());
  operators.run(far_too_long);
  operators.run("UPDATE holdfast_meta SET value = 'another boot' WHERE key = 'boot_id'");
  sql_test::expect_it_is_not_read(holdfast::open("sqlite:" + path()), "long");
}

TEST_F(sqlite_store, refuses_to_write_a_record_that_is_too_long_to_read) {
  const auto s = open(path());
  rule grows = writes(std::string(longest_of_ours + 1, 'x'));
  const auto refused = s->transact("long", grows);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::overloaded);
  EXPECT_FALSE(refused.error().outcome_unknown);
  EXPECT_EQ(record_of(*s, "long"), "");
  rule first = writes("1"), other = writes("2");
  const holdfast::store::state_store::step all[] = {{"a", &first}, {"long", &grows}, {"z", &other}};
  const auto outcomes = s->transact(all);
  EXPECT_TRUE(outcomes[0] && outcomes[2]);
  EXPECT_FALSE(outcomes[1]);
  EXPECT_EQ(record_of(*s, "a") + record_of(*s, "long") + record_of(*s, "z"), "12");
}

TEST_F(sqlite_store, takes_a_batch_of_many_names_that_many_use) {
  sql_test::expect_a_large_batch_is_carried_out(
      holdfast::open("sqlite:" + path() + "?busy_timeout=1m"));
}

}  // namespace
}  // namespace sqlite_test
