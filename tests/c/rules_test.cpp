#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <sstream>

#include "harness/program.hpp"
#include "harness/redis_server.hpp"
#include "harness/temp_dir.hpp"

// Each rule of rules.c is tried by a process of its own, on three stores.
namespace {

const std::vector<std::string>& rules() {
  static const auto* const all = [] {
    auto* const names = new std::vector<std::string>;
    std::istringstream said(harness::run_to_end({HOLDFAST_C_RULES, "--list"}, {}).out);
    for (std::string line; std::getline(said, line);) names->push_back(line);
    return names;
  }();
  return *all;
}

class c_rules : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  static void TearDownTestSuite() { server().reset(); }
  static std::unique_ptr<harness::redis_server>& server() {
    static auto* const running = new std::unique_ptr<harness::redis_server>;
    return *running;
  }
  std::string url() const {
    const auto& store = std::get<0>(GetParam());
    if (store == "memory") return "memory:rules";
    if (store == "sqlite") return "sqlite:" + dir_.file("locks.db");
    if (!server()) server() = std::make_unique<harness::redis_server>();
    return server()->url();
  }
  harness::temp_dir dir_;
};

TEST_P(c_rules, hold_for_a_program_in_c) {
  const auto how = harness::run_to_end({HOLDFAST_C_RULES, url(), std::get<1>(GetParam())}, {});
  EXPECT_EQ(how.code, 0) << how.err;
}

INSTANTIATE_TEST_SUITE_P(stores, c_rules,
                         testing::Combine(testing::Values("memory", "sqlite", "redis"),
                                          testing::ValuesIn(rules())),
                         [](const auto& it) {
                           return std::get<0>(it.param) + "_" + std::get<1>(it.param);
                         });

// To notify the waiter the release needs a right that this user does not have.
TEST(c_library, shows_what_the_store_said_when_a_release_failed) {
  const harness::redis_server server;
  ASSERT_EQ(server.ask({"ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all", "-publish"}),
            "OK");
  const std::string url = "redis+unix://app:pw@" + server.socket();
  const auto how = harness::run_to_end({HOLDFAST_C_RULES, url, "--release"}, {});
  EXPECT_EQ(how.code, 0) << how.err;
  EXPECT_NE(how.out.find("can't run this command"), std::string::npos) << how.out;
}

TEST(c_library, shows_nothing_but_its_functions_in_one_version) {
  const auto found = harness::run_to_end({"nm", "-D", "--defined-only", HOLDFAST_C_LIBRARY}, {});
  ASSERT_EQ(found.code, 0) << found.err;
  std::istringstream lines(found.out);
  std::size_t functions = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string symbol = line.substr(line.rfind(' ') + 1);
    if (symbol == "HOLDFAST_0") continue;
    ++functions;
    EXPECT_TRUE(symbol.starts_with("holdfast_") && symbol.ends_with("@@HOLDFAST_0")) << symbol;
  }
  EXPECT_GT(functions, 50U);
}

}  // namespace
