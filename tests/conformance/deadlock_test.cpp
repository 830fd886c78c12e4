#include <algorithm>
#include <mutex>
#include <set>

#include "conformance/cell.hpp"
#include "harness/eventually.hpp"
#include "harness/process.hpp"
#include "session/session_impl.hpp"

// session_options::detect_deadlocks between processes: each has one lock and wants the next one's.
namespace conformance {
namespace {

using holdfast::errc;

holdfast::session_options finding() {
  holdfast::session_options o;
  o.lease = holdfast::max_lease;  // nothing here ends by itself
  o.detect_deadlocks = true;
  return o;
}

std::string lock_name(std::size_t i, std::size_t n) { return "ring-" + std::to_string(i % n); }

// Arguments: URL NUMBER OF. Locks its own name, reports that, waits for a line, locks the next
// name, reports the result.
const harness::role ring_member{
    "ring_member", [](const std::vector<std::string>& args) {
      const auto i = std::stoul(args[1]), n = std::stoul(args[2]);
      const auto session = holdfast::open(args[0], finding());
      holdfast::mutex mine{session, lock_name(i, n)}, next{session, lock_name(i + 1, n)};
      const std::lock_guard guard{mine};
      harness::say("has");
      (void)harness::hear();
      const auto began = holdfast::boot_clock::now();
      try {
        const std::lock_guard both{next};
        harness::say("both");
      } catch (const holdfast::error& e) {
        using std::chrono::milliseconds;
        const auto took =
            std::chrono::duration_cast<milliseconds>(holdfast::boot_clock::now() - began);
        harness::say(e.reason() == errc::deadlock ? "deadlock" : e.what());
        harness::say(std::to_string(took.count()));
      }
      return 0;
    }};

/// The rows whose store supports the search; a test compares it with their capabilities.
bool can_find(const row& r) {
  static const std::set<std::string> able{"memory",        "memory_with_faults", "sqlite",
                                          "redis",         "redis_replicas",     "redis_sentinel",
                                          "redis_cluster", "postgres",           "mariadb"};
  return able.contains(r.name) || r.name.ends_with("_with_faults");
}

std::vector<cell> of_processes() {
  auto all = shared_by_processes(cells({"mutex"}));
  // The number of nodes and their names do not matter to a walk.
  std::erase_if(all, [](const cell& c) {
    return !can_find(c.store) || c.store.name == "redis_replicas" ||
           c.store.name == "redis_sentinel";
  });
  return all;
}

class deadlocks : public suite {
 protected:
  /// Starts a ring; its members begin to wait one after the other, so the last one is the youngest.
  void close_a_ring_of(std::size_t n) {
    std::vector<harness::child> ring;
    for (std::size_t i = 0; i < n; ++i) {
      ring.emplace_back("ring_member", std::vector<std::string>{store_.url(), std::to_string(i),
                                                                std::to_string(n)});
    }
    for (auto& c : ring) EXPECT_EQ(c.expect_line(), "has");
    for (std::size_t i = 0; i + 1 < n; ++i) {
      ring[i].tell("go");
      until_marks(i + 1);
    }
    ring.back().tell("go");
    EXPECT_EQ(ring.back().expect_line(), "deadlock");
    RecordProperty("found_after_ms", ring.back().expect_line());
    for (std::size_t i = 0; i + 1 < n; ++i) EXPECT_EQ(ring[i].expect_line(), "both");
    for (auto& c : ring) EXPECT_EQ(c.wait(), 0);
    harness::eventually("nothing stays behind", [&] { return all_names().empty(); });
  }
  std::vector<std::string> all_names() const { return *here_.impl()->names(); }
  void until_marks(std::size_t n) const {
    harness::eventually("marks of the waiters",
                        [&] { return all_names().size() - here_.names().size() == n; });
  }
};

INSTANTIATE_TEST_SUITE_P(stores, deadlocks, testing::ValuesIn(of_processes()), cell_name);

TEST_P(deadlocks, of_two_processes_are_resolved_by_the_last_waiter) { close_a_ring_of(2); }
TEST_P(deadlocks, of_three_processes_are_resolved_by_the_last_waiter) { close_a_ring_of(3); }
TEST_P(deadlocks, of_eight_processes_are_resolved_by_the_last_waiter) { close_a_ring_of(8); }

class looking_for_deadlocks : public suite {};
INSTANTIATE_TEST_SUITE_P(stores, looking_for_deadlocks, testing::ValuesIn(cells({"mutex"})),
                         cell_name);

TEST_P(looking_for_deadlocks, is_refused_where_the_store_shows_no_waits) {
  EXPECT_EQ(can_find(GetParam().store), here_.can().finds_deadlocks);
  auto options = finding();
  options.lease = here_.impl()->options().lease;
  try {
    (void)another(options);
    EXPECT_TRUE(here_.can().finds_deadlocks);
  } catch (const holdfast::error& e) {
    EXPECT_EQ(e.reason(), errc::unsupported);
    EXPECT_FALSE(here_.can().finds_deadlocks);
  }
}

}  // namespace
}  // namespace conformance
