#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <holdfast/holdfast.hpp>
#include <holdfast/testing.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/temp_dir.hpp"

/// The suites of this folder run over every store. A store is a line in rows(); rules beyond its
/// capabilities are left out, and docs/matrix.md shows what ran.
namespace conformance {

/// A store under test.
struct row {
  std::string name;  ///< letters, digits and underscores
  /// The URL of a fresh, empty store: files go into the folder.
  std::function<std::string(const harness::temp_dir&)> url;
  /// Called with that URL when the test is over.
  std::function<void(const std::string& url)> give_back{};
  /// Faults that must not show except by the time that operations take.
  std::function<holdfast::testing::fault_plan()> faults{};
  /// The primitives that it does not support. A test compares these two with its capabilities:
  /// reading them here would open every store (and start its server) to run one test on one of
  /// them.
  std::vector<std::string> lacks{};
  /// Rules ("suite.test") that require more than their primitives do; they are not run there.
  std::vector<std::string> without{};
  /// Also runs the rules for which few stores are enough (narrow_rules).
  bool every_rule = false;
  /// Another row's store, reached another way: only these primitives and suites are run, as the
  /// other row covers the rest of the code. Empty: all.
  struct {
    std::vector<std::string> primitives{}, suites{};
  } only{};
  bool several_processes = true;
  /// A waiter keeps its queue entry for as long as its session lives: a late waiter is waited for,
  /// so only the order of arrival is right.
  bool loses_no_turns = false;
  /// How many names a test may hold at once, and five times as many one after the other.
  int names_at_once = 2'000;
  /// Leases are multiples of this; the tests request no shorter lease than the shortest possible.
  std::chrono::milliseconds lease_step{1};
  /// False where the store keeps no queue: the test's own sessions count the waiters then.
  bool lists_waiters = true;
  /// Options of every lock of the suites, besides those of its test. Such a row is the store of
  /// another row, with different behaviour of the engine.
  std::function<void(holdfast::lock_options&)> locks_have{};
  /// With those options a released lock is free for others a little later.
  bool frees_later = false;
};
const std::vector<row>& rows();
/// A test's own options, with the additions of the present row.
holdfast::lock_options of_row(holdfast::lock_options options = {});

using decorator = std::function<std::unique_ptr<holdfast::store::session_store>(
    std::unique_ptr<holdfast::store::session_store>)>;

/// A fresh store, to which each opened session is like another process.
class fresh_store {
 public:
  explicit fresh_store(const row& r);
  ~fresh_store();
  holdfast::session open(holdfast::session_options options = {}) const;
  const std::string& url() const { return url_; }
  /// The number of acquisitions of a name that its sessions in this process have under way at the
  /// store.
  std::size_t waiting(const std::string& name) const;

 private:
  const row& row_;
  std::shared_ptr<class who_waits> waiting_;
  harness::temp_dir dir_;
  std::string url_;
  holdfast::session keeps_open_;  // a memory store lasts as long as a session has it open
};

/// One primitive on one store.
struct cell {
  row store;
  std::string primitive;
};
std::ostream& operator<<(std::ostream& out, const cell& c);

using capability = bool holdfast::store::capabilities::*;

/// Every primitive of the matrix, and the capability that it needs.
struct primitive {
  std::string name;
  capability needs;
};
const std::vector<primitive>& primitives();

/// The cells of these primitives on all stores that support them.
std::vector<cell> cells(const std::vector<std::string>& names);

/// Rules about code above the stores' interface: they run on the rows with every_rule, and on all
/// where HOLDFAST_EVERY_RULE is set.
struct narrow_rule {
  std::string rule;   ///< "suite.test", with asterisks
  std::string about;  ///< the code that it tests
};
const std::vector<narrow_rule>& narrow_rules();

/// The exclusions for GoogleTest's filter, once all tests are registered: each row's own rules,
/// `*/suite.test/row__*`, and the suites that it does not run, `*/suite.*/row__*`.
std::vector<std::string> left_out();

/// The cells whose store can be used by several processes.
std::vector<cell> shared_by_processes(std::vector<cell> all);

/// "memory__mutex": the matrix counts the rules of a cell by the end of their names.
std::string cell_name(const testing::TestParamInfo<cell>& info);

/// A suite: the store of its cell, one session on it, and a name.
class suite : public testing::TestWithParam<cell> {
 public:
  suite();
  ~suite() override;

 protected:
  /// Another session, like that of another process.
  holdfast::session another(holdfast::session_options options = {}) const {
    return store_.open(std::move(options));
  }
  std::size_t waiters() const;
  /// How long a waiter has to claim its turn; nothing where it keeps the turn.
  std::optional<std::int64_t> claim_us() const;
  /// The shortest lease of this store that is at least that long.
  std::chrono::milliseconds lease_of(std::chrono::milliseconds at_least) const;
  /// Whether it is the fence of the hold; a store that does not promise fences may not know it yet.
  bool shows_fence(std::uint64_t shown, const holdfast::lease& held) const {
    return shown == held.fence() || (!here_.can().fences && shown == 0);
  }
  std::size_t holders() const { return here_.show(name_).holders.size(); }
  /// Blocks until this many owners wait at the store for name_.
  void until_waiting(std::size_t n) const;
  /// Checks that nobody waits for name_ after a wait was given up: at once in one process, soon at
  /// a store whose last answer was not waited for (ADR 94).
  void expect_no_waiters() const;
  /// Blocks until nobody holds or waits for name_. Requests an idle lock first.
  void until_free() const;
  /// Checks that nobody holds or waits for it, now; on a row that frees later, soon.
  void expect_free() const;
  /// Tries for a released lock: once; on a row that frees later, until a try succeeds.
  bool now_had(const std::function<bool()>& attempt) const;

  fresh_store store_{GetParam().store};
  holdfast::session here_ = store_.open();
  std::string name_ = "orders";
};

}  // namespace conformance
