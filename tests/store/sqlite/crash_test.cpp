#include <atomic>

#include "fixture.hpp"
#include "harness/eventually.hpp"
#include "harness/process.hpp"
#include "harness/seed.hpp"
#include "harness/shared_memory.hpp"

namespace sqlite_test {
namespace {

/// The number of each worker's increments that were acknowledged.
struct ledger {
  std::array<std::atomic<long>, 8> acknowledged;
};

std::string name_of(int worker) { return "worker " + std::to_string(worker); }

// Increments for ever: its own record, and together with it one that all share.
const harness::role toiler{"toiler", [](const auto& args) {
                             const int me = std::stoi(args.at(1));
                             harness::shared<ledger> page{args.at(2)};
                             const std::string name = name_of(me);
                             const session store = open(args.at(0));
                             for (;;) {
                               rule own = increments();
                               rule shared = increments();
                               const std::vector<state_store::step> steps{{name, &own},
                                                                          {"shared", &shared}};
                               for (const auto& each : store->transact(steps)) {
                                 if (!each) return 1;
                               }
                               ++page->acknowledged[static_cast<std::size_t>(me)];
                             }
                             return 0;
                           }};

class crashes : public sqlite_store {};

TEST_F(crashes, kill_9_at_any_moment_loses_nothing_that_was_acknowledged) {
  constexpr int workers = 3;
  harness::random random;
  harness::shared<ledger> page{path("ledger")};
  const auto start = [&](int worker) {
    return harness::child{"toiler", {path(), std::to_string(worker), path("ledger")}};
  };
  std::vector<harness::child> all;
  for (int w = 0; w < workers; ++w) all.push_back(start(w));
  std::array<long, workers> killed{};
  for (int round = 0; round < 60; ++round) {
    const auto victim = random.between<std::size_t>(0, workers - 1);
    const long enough = page->acknowledged[victim] + random.between(1L, 60L);
    harness::eventually("the victim goes on", [&] { return page->acknowledged[victim] >= enough; });
    all[victim].kill();
    ++killed[victim];
    all[victim] = start(static_cast<int>(victim));
  }
  for (auto& each : all) each.kill();

  const session store = open(path());
  EXPECT_EQ(shell(path()).ask_one("PRAGMA integrity_check"), "ok");
  long sum = 0;
  for (int w = 0; w < workers; ++w) {
    const long found = number_of(*store, name_of(w));
    const long promised = page->acknowledged[static_cast<std::size_t>(w)];
    EXPECT_GE(found, promised);
    // Each kill may have hit between the commit and the acknowledgement.
    EXPECT_LE(found, promised + killed[static_cast<std::size_t>(w)] + 1);
    sum += found;
  }
  EXPECT_EQ(number_of(*store, "shared"), sum);
  rule change = increments();
  EXPECT_TRUE(store->transact("shared", change).ok());
}

TEST_F(crashes, the_survivors_go_on_while_others_are_killed) {
  const session store = open(path());
  harness::shared<ledger> page{path("ledger")};
  for (int round = 0; round < 20; ++round) {
    harness::child other{"toiler", {path(), "0", path("ledger")}};
    const long enough = page->acknowledged[0] + 5;
    while (page->acknowledged[0] < enough) {
      rule change = increments();
      ASSERT_TRUE(store->transact("mine", change).ok());
    }
    other.kill();
    rule change = increments();
    ASSERT_TRUE(store->transact("mine", change).ok());
  }
}

}  // namespace
}  // namespace sqlite_test
