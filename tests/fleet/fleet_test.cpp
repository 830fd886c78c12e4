#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <holdfast/holdfast.hpp>
#include <memory>

#include "fleet/log.hpp"
#include "harness/eventually.hpp"
#include "harness/process.hpp"
#include "harness/program.hpp"
#include "harness/redis_server.hpp"
#include "harness/temp_dir.hpp"
#include "paths.hpp"

// Programs in all languages on one name: none is inside with another, and fences grow across them.
namespace {

using harness::eventually;

// URL NAME LOG WORKER LEASE_MS: as the members in other languages.
const harness::role member{"member", [](const std::vector<std::string>& args) {
                             holdfast::session_options options;
                             options.lease = std::chrono::milliseconds(std::stoll(args[4]));
                             holdfast::mutex m{holdfast::open(args[0], options), args[1]};
                             while (!std::filesystem::exists(args[2] + ".end")) {
                               holdfast::lease held = m.acquire();
                               const std::string as =
                                   ' ' + args[3] + ' ' + std::to_string(held.fence());
                               fleet::write_line(args[2], "enter" + as);
                               fleet::write_line(args[2], "leave" + as);
                               (void)held.release();
                             }
                             return 0;
                           }};

// A stopped holder keeps the others waiting for as long; a slow machine must not end it.
constexpr const char* lease_ms = "3000";

const std::vector<std::string>& kinds() {
  static const auto* const all = new std::vector<std::string>{"cpp", "c", "python", "node", "cli"};
  return *all;
}

class mixed_fleet {
 public:
  explicit mixed_fleet(std::string url) : url_(std::move(url)) {
    for (const auto& kind : kinds()) start(kind);
  }

  const fleet::verdict& seen() { return judge_.look(); }

  /// Each kind has held it so many times more.
  void until_all_had_it(std::size_t times) {
    auto before = seen().holds;
    for (const auto& kind : kinds()) {
      eventually(kind + " had it again", [&] {
        const auto& now = seen().holds;
        return now.contains(kind) && now.at(kind) >= before[kind] + times;
      });
    }
  }

  /// Kills a program of this kind, inside or not, and starts another in its place.
  void kill(const std::string& kind) {
    auto& victim = members_.at(kind);
    fleet::write_line(log_, "kill " + victim.name);
    victim.itself->signal(SIGKILL);
    (void)victim.itself->wait();
    start(kind);
  }
  /// Stops one until others have had the lock, and lets it go on.
  void stop(const std::string& kind) {
    auto& victim = members_.at(kind);
    fleet::write_line(log_, "stop " + victim.name);
    victim.itself->stop();
    const auto fence = seen().fence;
    eventually("others have had it twice", [&] { return seen().fence >= fence + 2; });
    fleet::write_line(log_, "go " + victim.name);
    victim.itself->signal(SIGCONT);
  }

  /// All end by themselves; says how each ended.
  void end() {
    std::ofstream(log_ + ".end").flush();
    for (auto& [kind, m] : members_) EXPECT_EQ(m.itself->wait(), 0) << m.itself->err.rest();
  }

 private:
  struct one {
    std::string name;
    std::unique_ptr<harness::program> itself;
  };

  void start(const std::string& kind) {
    const std::string name = kind + "-" + std::to_string(++started_);
    auto words = command(kind);
    words.insert(words.end(), {url_, "fleet", log_, name, lease_ms});
    if (kind == "cli") words.emplace_back(HOLDFAST_TOOL);
    harness::surroundings around;
    around.environment = {"HOLDFAST_LIBRARY=" HOLDFAST_C_LIBRARY,
                          "PYTHONPATH=" HOLDFAST_SOURCE_DIR "/bindings/python",
                          "NODE_PATH=" HOLDFAST_SOURCE_DIR "/build/npm/node_modules"};
    members_[kind] = {name, std::make_unique<harness::program>(words, around)};
  }

  static std::vector<std::string> command(const std::string& kind) {
    const std::string here = HOLDFAST_SOURCE_DIR "/tests/fleet/";
    if (kind == "cpp") return {"/proc/self/exe", "--play-role", "member"};
    if (kind == "c") return {HOLDFAST_C_MEMBER};
    if (kind == "node") return {"/usr/bin/env", "node", here + "member.js"};
    if (kind == "python") return {"/usr/bin/python3", "-B", here + "member.py"};
    return {"/bin/sh", here + "member.sh"};
  }

  harness::temp_dir dir_;
  std::string url_;
  std::string log_ = dir_.file("log");
  fleet::judge judge_{log_};
  int started_ = 0;
  std::map<std::string, one> members_;
};

/// More of them for a longer run: each kills and stops one program of each language.
int rounds() {
  const char* const wanted = std::getenv("HOLDFAST_FLEET_ROUNDS");
  return wanted == nullptr ? 1 : std::stoi(wanted);
}

void has_no_violation(const std::string& url) {
  mixed_fleet fleet(url);
  fleet.until_all_had_it(3);
  for (int round = 0; round < rounds(); ++round) {
    for (const auto& kind : kinds()) {
      if (kind == "cli") continue;  // what holds it is a command of a shell's
      fleet.kill(kind);
      fleet.stop(kind);
    }
    fleet.until_all_had_it(3);
  }
  fleet.end();
  const auto& seen = fleet.seen();
  EXPECT_EQ(seen.violations, std::vector<std::string>{});
  for (const auto& kind : kinds()) EXPECT_GE(seen.holds.at(kind), 6U);
}

TEST(fleet_of_all_languages, is_never_inside_together_on_sqlite) {
  const harness::temp_dir dir;
  has_no_violation("sqlite:" + dir.file("locks.db"));
}

TEST(fleet_of_all_languages, is_never_inside_together_on_redis) {
  const harness::redis_server server;
  has_no_violation(server.url());
}

// ---- the judge can say no -----------------------------------------------------------------------

fleet::verdict judged(const std::vector<std::string>& lines) {
  const harness::temp_dir dir;
  for (const auto& line : lines) fleet::write_line(dir.file("log"), line);
  return fleet::judge(dir.file("log")).look();
}

TEST(fleet_log, two_that_are_inside_are_a_violation) {
  EXPECT_EQ(judged({"enter c-1 1", "enter cpp-1 2"}).violations.size(), 1U);
  EXPECT_EQ(judged({"enter c-1 1", "leave c-1 1", "enter cpp-1 2"}).violations.size(), 0U);
}

TEST(fleet_log, a_fence_that_does_not_grow_is_a_violation) {
  EXPECT_EQ(judged({"enter c-1 2", "leave c-1 2", "enter cpp-1 2"}).violations.size(), 1U);
  EXPECT_EQ(judged({"enter c-1 2", "leave c-1 1"}).violations.size(), 1U);
}

TEST(fleet_log, only_who_was_stopped_or_killed_inside_may_be_overtaken) {
  EXPECT_EQ(judged({"enter c-1 1", "stop c-1", "enter cpp-1 2", "go c-1", "leave c-1 1"}).refused,
            1U);
  EXPECT_TRUE(judged({"enter c-1 1", "kill c-1", "enter cpp-1 2"}).violations.empty());
  EXPECT_EQ(judged({"stop c-1", "go c-1", "enter c-1 1", "enter cpp-1 2"}).violations.size(), 1U);
  EXPECT_EQ(judged({"enter c-1 1", "kill c-2", "enter cpp-1 2"}).violations.size(), 1U);
}

}  // namespace
