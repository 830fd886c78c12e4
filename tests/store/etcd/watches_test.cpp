#include "store/etcd/watches.hpp"

#include <atomic>
#include <memory>

#include "base/store_url.hpp"
#include "harness/eventually.hpp"
#include "harness/fault_proxy.hpp"
#include "store/etcd/fixture.hpp"
#include "store/etcd/members.hpp"
#include "store/etcd/session_lease.hpp"

namespace etcd_test {
namespace {

using namespace std::chrono_literals;
namespace etcd = holdfast::store::etcd;
using holdfast::faultproxy::relay;
using holdfast::faultproxy::way;

/// A session's watches over two members, the first of which can fall silent.
class etcd_watches : public testing::Test {
 protected:
  etcd::etcd_options options() {
    const auto both = "etcd://127.0.0.1:" + std::to_string(first_.port()) +
                      ",127.0.0.1:" + std::to_string(second_.port()) + base_;
    auto o = etcd::read_options(*holdfast::base::parse_url(both)).value();
    o.command_timeout = 4s;
    o.clock = &holdfast::real_clock();
    return o;
  }
  void silence_first() {
    first_.with([](relay& r) {
      r.stall(way::up);
      r.stall(way::down);
    });
  }
  /// A watch that a busy member does not answer in time is told at once: its waiter polls, and asks
  /// for another one.
  void expect_watched(const std::string& key) {
    std::shared_ptr<std::atomic<bool>> told;
    harness::eventually("a watch", [&] {
      told = std::make_shared<std::atomic<bool>>(false);
      (void)watches_.add(key, {}, [told] { *told = true; });
      return !*told;
    });
    (void)calm_cluster().ctl("put " + key + " x");
    harness::eventually("it is told", [&] { return told->load(); });
  }

  const std::string base_ = fresh_base();
  harness::fault_proxy first_{calm_cluster().port(0)}, second_{calm_cluster().port(1)};
  etcd::channel to_{options()};
  etcd::watches watches_{to_};
};

TEST_F(etcd_watches, leave_a_member_that_did_not_answer_a_request) {
  expect_watched(base_ + "/before");
  silence_first();
  EXPECT_TRUE(etcd::session_lease::grant(to_, [] {}));
  expect_watched(base_ + "/after");
}

TEST_F(etcd_watches, leave_a_member_that_did_not_answer_a_watch) {
  expect_watched(base_ + "/before");
  silence_first();
  std::atomic<bool> told{false};
  (void)watches_.add(base_ + "/unanswered", {}, [&] { told = true; });
  EXPECT_TRUE(told) << "the waiter polls";
  expect_watched(base_ + "/after");
}

TEST_F(etcd_watches, stay_at_a_member_that_is_only_slow) {
  std::atomic<bool> told{false};
  (void)watches_.add(base_ + "/slow", {}, [&] { told = true; });
  const auto now = holdfast::real_clock().now();
  to_.inner().leave_silent(0, now - 2h, now - 1h);
  expect_watched(base_ + "/after");
  EXPECT_EQ(second_.count().open, 0U) << "over the stream that there was";
  EXPECT_FALSE(told);
}

}  // namespace
}  // namespace etcd_test
