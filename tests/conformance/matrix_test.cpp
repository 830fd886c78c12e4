#include "conformance/matrix.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "conformance/cell.hpp"
#include "paths.hpp"

namespace conformance {
namespace {

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream in(line.substr(1));
  for (std::string cell; std::getline(in, cell, '|');) cells.push_back(cell);
  return cells;
}

bool built(const std::string& column) {
  return std::any_of(rows().begin(), rows().end(),
                     [&](const row& r) { return column == " " + title(r.name) + " "; });
}

/// The page in docs, without the columns of stores that this build does not have.
std::string checked_in() {
  std::ifstream file(std::string(HOLDFAST_SOURCE_DIR) + "/docs/matrix.md");
  std::string text;
  std::vector<bool> kept;  // of the table that the line is in
  for (std::string line; std::getline(file, line); text += "\n") {
    if (!line.starts_with("|")) {
      kept.clear();
      text += line;
      continue;
    }
    const auto cells = split(line);
    for (std::size_t i = kept.size(); i < cells.size(); ++i) {
      kept.push_back(i == 0 || built(cells[i]));
    }
    text += "|";
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (kept[i]) text += cells[i] + "|";
    }
  }
  return text;
}

TEST(matrix, everything_that_a_store_can_do_is_run) {
  EXPECT_EQ(matrix().find(not_run), std::string::npos) << matrix();
}

TEST(matrix, each_row_lacks_exactly_the_primitives_that_its_store_does_not_support) {
  for (const row& r : rows()) {
    const auto can = fresh_store(r).open().can();
    for (const primitive& p : primitives()) {
      const bool lacks = std::find(r.lacks.begin(), r.lacks.end(), p.name) != r.lacks.end();
      EXPECT_EQ(lacks, !(can.*p.needs)) << p.name << " on " << r.name;
    }
    EXPECT_EQ(r.several_processes, can.several_processes) << r.name;
    EXPECT_EQ(r.lists_waiters, can.lists_waiters) << r.name;
    EXPECT_EQ(r.lease_step.count(), can.lease_step_ms) << r.name;
  }
}

TEST(matrix, the_page_in_docs_matches_this_suite) {
  EXPECT_EQ(matrix(), checked_in())
      << "if the change is meant: test_conformance --print-matrix > docs/matrix.md";
}

/// "suite.test" of every rule, whatever row it is registered for.
std::vector<std::string> all_rules() {
  std::vector<std::string> found;
  const auto& unit = *testing::UnitTest::GetInstance();
  for (int s = 0; s < unit.total_test_suite_count(); ++s) {
    const testing::TestSuite& one = *unit.GetTestSuite(s);
    const std::string suite = one.name();
    for (int t = 0; t < one.total_test_count(); ++t) {
      const std::string test = one.GetTestInfo(t)->name();
      found.push_back(suite.substr(suite.rfind('/') + 1) + "." + test.substr(0, test.find('/')));
    }
  }
  return found;
}

// A pattern that matches no rule any more excludes nothing: a rule was renamed, and not here.
TEST(matrix, each_pattern_that_leaves_rules_out_matches_a_rule) {
  const auto rules = all_rules();
  std::vector<std::string> patterns;
  for (const auto& n : narrow_rules()) patterns.push_back(n.rule);
  for (const row& r : rows()) patterns.insert(patterns.end(), r.without.begin(), r.without.end());
  for (const std::string& pattern : patterns) {
    const bool found = std::any_of(rules.begin(), rules.end(), [&](const std::string& rule) {
      return ::fnmatch(pattern.c_str(), rule.c_str(), 0) == 0;
    });
    EXPECT_TRUE(found) << pattern;
  }
}

TEST(matrix, every_store_that_was_built_is_in_it) {
  std::vector<std::string> built{"memory"};
#ifdef HOLDFAST_WITH_SQLITE
  built.emplace_back("sqlite");
#endif
#ifdef HOLDFAST_WITH_REDIS
  built.emplace_back("redis");
#endif
#ifdef HOLDFAST_WITH_ZOOKEEPER
  built.emplace_back("zookeeper");
#endif
#ifdef HOLDFAST_WITH_ETCD
  built.emplace_back("etcd");
#endif
#ifdef HOLDFAST_WITH_MEMCACHED
  built.emplace_back("memcached");
#endif
#ifdef HOLDFAST_WITH_POSTGRES
  built.emplace_back("postgres");
#endif
#ifdef HOLDFAST_WITH_MARIADB
  built.emplace_back("mariadb");
#endif
  for (const std::string& store : built) {
    const bool there =
        std::any_of(rows().begin(), rows().end(), [&](const row& r) { return r.name == store; });
    EXPECT_TRUE(there) << store;
  }
}

}  // namespace
}  // namespace conformance
