#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "harness/program.hpp"
#include "harness/redis_server.hpp"
#include "harness/temp_dir.hpp"
#include "paths.hpp"

namespace {

using nlohmann::json;

class command : public testing::Test {
 protected:
  /// Short: whether it works, not how fast.
  harness::outcome run(std::vector<std::string> arguments, double seconds = 0.01) const {
    arguments.insert(arguments.begin(), {HOLDFAST_BENCH, "--seconds", std::to_string(seconds),
                                         "--repeat", "1", "--json"});
    return harness::run_to_end(arguments, around);
  }

  static std::vector<json> lines(const harness::outcome& o) {
    std::istringstream text(o.out);
    std::vector<json> all;
    for (std::string line; std::getline(text, line);) all.push_back(json::parse(line));
    return all;
  }

  const harness::temp_dir folder;
  const std::string store = "sqlite:" + folder.file("bench.db");
  harness::surroundings around{};
};

TEST_F(command, every_workload_yields_one_line_a_subject_with_the_promised_keys) {
  const auto r = run({"--store", store, "--subject", "holdfast,flock"});
  EXPECT_EQ(r.code, 0) << r.err;
  // Left out is only what needs a server: W1-pinned, and what is not called W something.
  EXPECT_EQ(("\n" + r.err).find("\nW"), ("\n" + r.err).rfind("\nW1-pinned")) << r.err;
  EXPECT_EQ(("\n" + r.err).rfind("\nW"), ("\n" + r.err).rfind("\nW1-pinned")) << r.err;
  std::set<std::string> seen;
  for (const auto& line : lines(r)) {
    seen.insert(line["workload"].get<std::string>() + " " + line["subject"].get<std::string>());
    for (const char* const key : {"ops_per_s", "p50_us", "p99_us", "min_share", "max_share",
                                  "store_ops_per_acquire", "ratio_to_floor"}) {
      EXPECT_TRUE(line.contains(key)) << key << " in " << line;
    }
  }
  for (const std::string w : {"W1", "W2", "W3", "W4", "W5", "W6", "W7"}) {
    EXPECT_TRUE(seen.contains(w + " holdfast")) << w;
    EXPECT_TRUE(seen.contains(w + " flock")) << w;
  }
}

// On a machine that is busy the floor may do nothing in so short a time, and then there is no
// ratio.
TEST_F(command, ratio_is_that_of_the_figures_beside_it) {
  const std::vector<std::string> asked{"--store", store,       "--workload",
                                       "W1",      "--subject", "holdfast,sqlite"};
  std::vector<json> all;
  for (double seconds = 0.01; all.empty() || all.back()["ops_per_s"] == 0; seconds *= 4) {
    all = lines(run(asked, seconds));
    ASSERT_EQ(all.size(), 2u);
  }
  EXPECT_EQ(all[0]["subject"], "holdfast");
  EXPECT_EQ(all[0]["floor"], "sqlite");
  EXPECT_NEAR(all[0]["ratio_to_floor"].get<double>(),
              all[0]["ops_per_s"].get<double>() / all[1]["ops_per_s"].get<double>(), 1e-6);
  EXPECT_TRUE(all[1]["ratio_to_floor"].is_null());
}

TEST_F(command, growth_has_a_row_for_each_series_and_number) {
  const auto r = run({"--store", store, "--growth", "--most", "100"});
  EXPECT_EQ(r.code, 0) << r.err;
  std::vector<std::string> seen;
  for (const auto& line : lines(r)) {
    seen.push_back(line["workload"].get<std::string>() + " " + line["subject"].get<std::string>());
    EXPECT_GT(line["p50_us"].get<double>(), 0) << line;
    EXPECT_FALSE(line["bytes_each"].is_null()) << line;
  }
  EXPECT_EQ(seen,
            (std::vector<std::string>{"names 10", "names 100", "leases 10", "leases 100",
                                      "waiters 10", "waiters 100", "sessions 10", "sessions 100"}));
}

TEST_F(command, paired_slices_compare_two_subjects_and_the_first_with_itself) {
  const auto r = run({"--store", "memory:", "--paired", "--subject", "holdfast,metrics"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find(" a slice of 2000 each | µs | times holdfast (95 %) |"), r.out.npos)
      << r.out;
  for (const std::string row : {"holdfast", "holdfast again", "metrics"})
    EXPECT_NE(r.out.find("\n| " + row + " | "), r.out.npos) << r.out;
  const auto alone = run({"--store", "memory:", "--paired", "--subject", "holdfast"});
  EXPECT_EQ(alone.code, 64) << alone.out;
}

TEST_F(command, two_workloads_can_be_named_at_once) {
  const auto all = lines(run({"--store", store, "--workload", "W1,W7", "--subject", "holdfast"}));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0]["workload"], "W1");
  EXPECT_EQ(all[1]["workload"], "W7");
}

TEST_F(command, workloads_that_a_store_does_not_support_are_reported_by_name) {
  const auto r = run({"--store", "memory:", "--workload", "W4", "--subject", "holdfast"});
  EXPECT_EQ(r.code, 0);
  EXPECT_EQ(r.out, "");
  EXPECT_NE(r.err.find("W4 is left out: memory: lives inside one process"), std::string::npos);
}

#ifdef HOLDFAST_WITH_REDIS
TEST_F(command, each_workload_that_a_dialect_cannot_run_is_left_out) {
  const harness::redis_server server;
  for (const std::string dialect : {"redlock", "redisson", "setnx"}) {
    const auto r = run({"--store", server.url("?dialect=" + dialect), "--workload",
                        "resign,take-over,barrier-64", "--subject", "holdfast"});
    EXPECT_EQ(r.code, 0) << dialect << ": " << r.err;
    EXPECT_EQ(r.out, "") << dialect;
  }
}

TEST_F(command, a_server_that_was_pinned_may_run_everywhere_afterwards) {
  const harness::redis_server server;
  const auto told = server.ask({"INFO", "server"});
  const auto at = told.find("process_id:") + 11;
  const auto pid = told.substr(at, told.find('\r', at) - at);
  const auto allowed = [&] {
    std::ifstream file("/proc/" + pid + "/status");
    std::string line;
    while (std::getline(file, line) && !line.starts_with("Cpus_allowed_list:")) {
    }
    return line;
  };
  const auto before = allowed();
  const auto r = run({"--store", server.url(), "--server", pid, "--workload", "W1-pinned",
                      "--subject", "holdfast,loop"});
  EXPECT_EQ(r.code, 0) << r.err;
  const bool has_two = before.find_first_of("-,") != std::string::npos;
  EXPECT_EQ(lines(r).size(), has_two ? 2U : 0U) << r.err;
  EXPECT_EQ(allowed(), before);
}
#endif

TEST_F(command, unknown_words_are_refused_before_anything_is_measured) {
  for (const char* const option : {"--workload", "--subject"}) {
    const auto r = run({option, "W99"});
    EXPECT_EQ(r.code, 64);
    EXPECT_EQ(r.out, "");
    EXPECT_NE(r.err.find("there is no 'W99'"), std::string::npos) << r.err;
  }
}

TEST_F(command, an_unavailable_store_is_named) {
  const std::string unusable = "sqlite:" + folder.path().string();
  const auto r = run({"--store", unusable, "--workload", "W1"});
  EXPECT_EQ(r.code, 1);
  EXPECT_NE(r.err.find(unusable), std::string::npos) << r.err;
}

TEST_F(command, leaves_no_files_next_to_the_store) {
  run({"--store", store, "--workload", "W1"});
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_EQ(entry.path().filename().string().find("holdfast-bench-"), std::string::npos) << entry;
  }
}

}  // namespace
