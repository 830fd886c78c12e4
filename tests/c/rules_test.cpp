#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <holdfast/session.hpp>
#include <iterator>
#include <memory>
#include <regex>
#include <set>
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
  static void TearDownTestSuite() { servers() = {}; }
  static std::array<std::unique_ptr<harness::redis_server>, 3>& servers() {
    static auto* const running = new std::array<std::unique_ptr<harness::redis_server>, 3>;
    return *running;
  }
  /// Of independent stores: most rules use only the first.
  std::string url(std::size_t node) const {
    const auto& store = std::get<0>(GetParam());
    const std::string name = "rules-" + std::to_string(node);
    if (store == "memory") return "memory:" + name;
    if (store == "sqlite") return "sqlite:" + dir_.file(name);
    auto& server = servers().at(node);
    if (!server) server = std::make_unique<harness::redis_server>();
    return server->url();
  }
  harness::temp_dir dir_;
};

TEST_P(c_rules, hold_for_a_program_in_c) {
  const auto how =
      harness::run_to_end({HOLDFAST_C_RULES, url(0), std::get<1>(GetParam()), url(1), url(2)}, {});
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

// A program that uses a server which stops before its first line is answered, and resumes before
// its second.
void expect_to_survive_a_stop(const std::string& mode, const std::string& timeout,
                              const std::string& says) {
  harness::redis_server server;
  harness::program user({HOLDFAST_C_RULES, server.url("?command_timeout=" + timeout), mode}, {});
  const auto line = [&] {
    try {
      return user.out.line();
    } catch (const std::exception&) {
      return user.err.rest();
    }
  };
  ASSERT_EQ(line(), "held");
  server.stop();
  user.tell("\n");
  const std::string said = line();
  server.resume();
  ASSERT_EQ(said, says);
  user.tell("\n");
  EXPECT_EQ(user.wait(), 0) << user.err.rest();
  EXPECT_TRUE(holdfast::open(server.url()).show("m").holders.empty());
}

TEST(c_library, returns_unavailable_while_a_server_hangs_and_the_lease_is_suspect) {
  expect_to_survive_a_stop("--hangs", "2s", "suspect");
}

TEST(c_library, closes_a_lease_with_unconfirmed_release_while_the_server_hangs) {
  expect_to_survive_a_stop("--unconfirmed", "60s", "closed");
}

TEST(c_library, closes_a_session_in_the_call_that_was_told_to_while_the_server_hangs) {
  expect_to_survive_a_stop("--closes-sessions", "10s", "closed");
}

TEST(c_library, closes_an_idle_lock_in_the_call_that_was_told_to_while_the_server_hangs) {
  expect_to_survive_a_stop("--closes-idle-locks", "10s", "closed");
}

TEST(c_library, waits_at_the_end_for_another_thread_that_releases_its_lease) {
  expect_to_survive_a_stop("--ends-in-release", "60s", "ends");
}

TEST(c_library, waits_at_the_end_for_another_thread_that_closes_its_lease) {
  expect_to_survive_a_stop("--ends-in-close", "60s", "ends");
}

TEST(c_library, waits_at_the_end_for_another_thread_that_extends_a_lease_that_was_closed) {
  expect_to_survive_a_stop("--ends-in-extend", "60s", "ends");
}

/// All matches of the expression's group.
std::set<std::string> found(const std::string& text, const char* expression) {
  const std::regex e(expression);
  std::set<std::string> all;
  for (std::sregex_iterator at(text.begin(), text.end(), e), end; at != end; ++at)
    all.insert((*at)[1]);
  return all;
}

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator(file), {}};
}

TEST(c_library, has_no_function_with_a_handle_that_the_rule_about_bad_handles_forgets) {
  const std::filesystem::path root = HOLDFAST_SOURCE_DIR;
  std::set<std::string> functions;
  for (const auto& header : std::filesystem::directory_iterator(root / "include/holdfast/c"))
    functions.merge(found(content(header), R"(\n[a-z][\w *]*\b(holdfast_\w+)\([^)]*\);)"));
  ASSERT_GT(functions.size(), 50U);
  const std::string all = content(root / "tests/c/rules.c");
  const auto begins = all.find("static void refused_everywhere(");
  const auto called = found(all.substr(begins, all.find("\n}\n", begins) - begins),
                            R"((holdfast_\w+)\(&?(?:bad|member|nodes)\b)");
  std::vector<std::string> forgotten;
  std::ranges::set_difference(functions, called, std::back_inserter(forgotten));
  const std::vector<std::string> without_a_handle{
      "holdfast_abi",       "holdfast_close_all", "holdfast_open", "holdfast_queue_open",
      "holdfast_stop_open", "holdfast_version",   "holdfast_words"};
  EXPECT_EQ(forgotten, without_a_handle);
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
