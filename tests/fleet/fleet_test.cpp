#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <holdfast/holdfast.hpp>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "fleet/log.hpp"
#include "harness/eventually.hpp"
#include "harness/process.hpp"
#include "harness/program.hpp"
#include "harness/redis_server.hpp"
#include "harness/temp_dir.hpp"
#include "paths.hpp"

// Programs in all languages use the same names: no two of them hold a name at the same time, unless
// both read, and fences grow from program to program.
namespace {

using harness::eventually;

// Arguments: URL NAMES SHARED LOG WORKER LEASE_MS, as for the members in other languages. A member
// takes one name after the other, then SHARED as a reader and as a writer. The log of a name is
// LOG.NAME. If the file LOG.stop.WORKER exists, the member stops itself while it holds a name; if
// LOG.end exists, it ends.
const harness::role member{
    "member", [](const std::vector<std::string>& args) {
      const std::string &shared = args[2], &log = args[3], &worker = args[4];
      holdfast::session_options options;
      options.lease = std::chrono::milliseconds(std::stoll(args[5]));
      auto session = holdfast::open(args[0], options);
      const auto take = [&](const std::string& name, holdfast::lease held, const char* begins,
                            const char* ends) {
        const std::string as = ' ' + worker + ' ' + std::to_string(held.fence());
        fleet::write_line(log + '.' + name, begins + as);
        if (std::filesystem::exists(log + ".stop." + worker)) std::raise(SIGSTOP);
        fleet::write_line(log + '.' + name, ends + as);
        (void)held.release();
      };
      std::vector<std::function<void()>> turns;
      std::istringstream all(args[1]);
      for (std::string name; std::getline(all, name, ',');) {
        turns.emplace_back(
            [=] { take(name, holdfast::mutex(session, name).acquire(), "enter", "leave"); });
      }
      holdfast::shared_mutex rw{session, shared};
      turns.emplace_back([&] { take(shared, rw.acquire_shared(), "read", "done"); });
      turns.emplace_back([&] { take(shared, rw.acquire(), "enter", "leave"); });
      for (std::size_t turn = 0; !std::filesystem::exists(log + ".end"); ++turn)
        turns[turn % turns.size()]();
      return 0;
    }};

// The others wait this long for a stopped holder. On a slow machine the lease must not end early.
constexpr const char* lease_ms = "3000";

const std::vector<std::string>& kinds() {
  static const auto* const all = new std::vector<std::string>{"cpp", "c", "python", "node", "cli"};
  return *all;
}

// One round, with one program of each language, stops and kills each. "make test-nightly" runs
// rounds for a minute, with two programs of each: it stops one, and kills the other.
std::chrono::seconds how_long() {
  const char* const wanted = std::getenv("HOLDFAST_FLEET_SECONDS");
  return std::chrono::seconds(wanted == nullptr ? 0 : std::stoi(wanted));
}
std::size_t seats() { return how_long().count() == 0 ? 1 : 2; }

// Each language has to pass these names on unchanged. The last one has readers, too.
const std::vector<std::string>& names() {
  static const auto* const all = new std::vector<std::string>{"order:1", "Lager Köln", "'$x;"};
  return *all;
}
const std::string& shared_name() { return names().back(); }

class mixed_fleet {
 public:
  explicit mixed_fleet(std::string url) : url_(std::move(url)) {
    for (const auto& name : names()) judges_.emplace(name, fleet::judge(log_of(name)));
    for (const auto& kind : kinds()) {
      for (std::size_t seat = 0; seat < seats(); ++seat) start({kind, seat});
    }
  }

  // Otherwise programs that a shell has started, and that are stopped, would outlive a failed test.
  ~mixed_fleet() {
    for (const auto& [at, m] : members_) m.signal(SIGKILL);
  }
  mixed_fleet(const mixed_fleet&) = delete;
  mixed_fleet& operator=(const mixed_fleet&) = delete;

  const fleet::verdict& seen(const std::string& name) { return judges_.at(name).look(); }

  /// The kind of a program, and which one of that kind.
  using place = std::pair<std::string, std::size_t>;

  /// Waits until the program has held each name this many times more, and read the shared one.
  void until_it_had_them(const place& at, std::size_t times) {
    const std::string& worker = members_.at(at).name;
    for (const auto& name : names()) {
      const auto so_far = holds(name, worker);
      eventually(worker + " had " + name + " again",
                 [&] { return holds(name, worker) >= so_far + times; });
    }
    const auto so_far = reads(worker);
    eventually(worker + " read again", [&] { return reads(worker) >= so_far + times; });
  }
  void until_all_had_them(std::size_t times) {
    for (const auto& [at, m] : members_) until_it_had_them(at, times);
  }

  /// Kills a program, inside or not, and starts another in its place.
  void kill(const place& at) {
    auto& victim = members_.at(at);
    note("kill " + victim.name);
    victim.signal(SIGKILL);
    (void)victim.itself->wait();
    start(at);
  }
  /// Lets a program stop itself while it holds a name, and continues it when others have held each
  /// name, that one included.
  void stop_inside(const place& at) {
    const auto& victim = members_.at(at);
    const std::string order = log_ + ".stop." + victim.name;
    note("stop " + victim.name);
    std::ofstream(order).flush();
    victim.itself->await_stop();
    std::filesystem::remove(order);
    for (const auto& name : names()) {
      const auto entered = seen(name).entered;
      eventually("others have had " + name, [&] { return seen(name).entered >= entered + 2; });
    }
    note("go " + victim.name);
    victim.signal(SIGCONT);
  }

  /// Lets all members end by themselves, and checks their exit codes.
  void end() {
    std::ofstream(log_ + ".end").flush();
    for (auto& [at, m] : members_) EXPECT_EQ(m.itself->wait(), 0) << m.itself->err.rest();
    members_.clear();
  }

 private:
  struct one {
    std::string name;
    std::unique_ptr<harness::program> itself;

    // The process leads a group of its own, which contains the program that a shell has started.
    void signal(int number) const { ::kill(-itself->pid(), number); }
  };

  static std::size_t of(const std::map<std::string, std::size_t>& all, const std::string& worker) {
    const auto its = all.find(worker);
    return its == all.end() ? 0 : its->second;
  }
  std::size_t holds(const std::string& name, const std::string& worker) {
    return of(seen(name).holds, worker);
  }
  std::size_t reads(const std::string& worker) { return of(seen(shared_name()).reads, worker); }
  std::string log_of(const std::string& name) const { return log_ + '.' + name; }
  void note(const std::string& line) const {
    for (const auto& name : names()) fleet::write_line(log_of(name), line);
  }

  void start(const place& at) {
    const std::string& kind = at.first;
    const std::string name = kind + "-" + std::to_string(++started_);
    auto words = command(kind);
    std::string all;
    for (const auto& each : names()) {
      if (each != shared_name()) all += (all.empty() ? "" : ",") + each;
    }
    words.insert(words.end(), {url_, all, shared_name(), log_, name, lease_ms});
    if (kind == "cli") words.emplace_back(HOLDFAST_TOOL);
    harness::surroundings around;
    around.environment = {"HOLDFAST_LIBRARY=" HOLDFAST_C_LIBRARY,
                          "PYTHONPATH=" HOLDFAST_SOURCE_DIR "/bindings/python",
                          "NODE_PATH=" HOLDFAST_SOURCE_DIR "/build/npm/node_modules"};
    members_[at] = {name, std::make_unique<harness::program>(words, around)};
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
  std::map<std::string, fleet::judge> judges_;
  int started_ = 0;
  std::map<place, one> members_;
};

void has_no_violation(const std::string& url) {
  const auto until = std::chrono::steady_clock::now() + how_long();
  mixed_fleet fleet(url);
  fleet.until_all_had_them(3);
  std::size_t rounds = 0;
  do {
    for (const auto& kind : kinds()) {
      const std::size_t seat = rounds % seats();
      fleet.stop_inside({kind, seat});
      fleet.until_it_had_them({kind, seat}, 1);
      fleet.kill({kind, (seat + 1) % seats()});
      fleet.until_it_had_them({kind, (seat + 1) % seats()}, 1);
    }
    ++rounds;
  } while (std::chrono::steady_clock::now() < until);
  fleet.end();
  std::size_t refused = 0;
  for (const auto& name : names()) {
    const auto& seen = fleet.seen(name);
    EXPECT_EQ(seen.violations, std::vector<std::string>{}) << name;
    refused += seen.refused;
  }
  // Each program that stopped itself continues with a stale fence. (Programs that a shell has
  // started do not stop themselves.)
  EXPECT_GE(refused, (kinds().size() - 1) * rounds);
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

TEST(fleet_log, two_workers_inside_are_a_violation) {
  EXPECT_EQ(judged({"enter c-1 1", "enter cpp-1 2"}).violations.size(), 1U);
  EXPECT_EQ(judged({"enter c-1 1", "leave c-1 1", "enter cpp-1 2"}).violations.size(), 0U);
}

TEST(fleet_log, readers_may_be_together_and_a_writer_is_alone) {
  const std::string c = "read c-1 1", cpp = "read cpp-1 2";
  EXPECT_TRUE(judged({c, cpp, "done c-1 1", "done cpp-1 2", "enter c-1 3"}).violations.empty());
  EXPECT_TRUE(judged({cpp, c}).violations.empty());  // in no order among themselves
  EXPECT_EQ(judged({c, cpp, "done c-1 1", "enter c-1 3"}).violations.size(), 1U);
  EXPECT_EQ(judged({"enter c-1 1", cpp}).violations.size(), 1U);
  EXPECT_EQ(judged({"enter c-1 2", "leave c-1 2", cpp}).violations.size(), 1U);  // an older fence
  EXPECT_EQ(judged({cpp, "done cpp-1 2", "enter c-1 1"}).violations.size(), 1U);
  EXPECT_EQ(judged({c, "done c-1 1", "done c-1 1"}).violations.size(), 1U);
}

TEST(fleet_log, a_writer_may_come_when_a_reader_was_stopped_or_killed) {
  EXPECT_EQ(judged({"read c-1 1", "stop c-1", "enter cpp-1 2", "go c-1", "done c-1 1"}).refused,
            1U);
  EXPECT_TRUE(judged({"read c-1 1", "kill c-1", "enter cpp-1 2"}).violations.empty());
  EXPECT_EQ(judged({"read c-1 1", "read c-2 2", "kill c-1", "enter cpp-1 3"}).violations.size(),
            1U);
}

TEST(fleet_log, a_fence_that_does_not_grow_is_a_violation) {
  EXPECT_EQ(judged({"enter c-1 2", "leave c-1 2", "enter cpp-1 2"}).violations.size(), 1U);
  EXPECT_EQ(judged({"enter c-1 2", "leave c-1 1"}).violations.size(), 1U);
}

TEST(fleet_log, only_a_worker_stopped_or_killed_inside_may_be_overtaken) {
  EXPECT_EQ(judged({"enter c-1 1", "stop c-1", "enter cpp-1 2", "go c-1", "leave c-1 1"}).refused,
            1U);
  EXPECT_TRUE(judged({"enter c-1 1", "kill c-1", "enter cpp-1 2"}).violations.empty());
  EXPECT_EQ(judged({"stop c-1", "go c-1", "enter c-1 1", "enter cpp-1 2"}).violations.size(), 1U);
  EXPECT_EQ(judged({"enter c-1 1", "kill c-2", "enter cpp-1 2"}).violations.size(), 1U);
}

}  // namespace
