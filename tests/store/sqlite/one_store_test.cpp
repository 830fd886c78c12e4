#include <filesystem>

#include "fixture.hpp"
#include "store/sql/one_store_rules.hpp"

namespace sqlite_test {
namespace {

TEST_F(sqlite_store, of_two_paths_is_one_node_of_a_quorum) {
  const auto s = holdfast::open("sqlite:" + path());
  std::filesystem::create_directory_symlink(std::filesystem::path(path()).parent_path(),
                                            path("beside"));
  sql_test::expect_one_store(s, holdfast::open("sqlite:" + path("beside/locks.db")));
}

TEST_F(sqlite_store, that_is_a_copy_of_another_is_a_node_of_its_own) {
  {
    (void)holdfast::open("sqlite:" + path());
  }
  std::filesystem::copy_file(path(), path("copy.db"));
  sql_test::expect_two_stores(holdfast::open("sqlite:" + path()),
                              holdfast::open("sqlite:" + path("copy.db")));
}

}  // namespace
}  // namespace sqlite_test
