#include <array>
#include <thread>

#include "harness/eventually.hpp"
#include "harness/fault_proxy.hpp"
#include "store/etcd/fixture.hpp"

// The keys, and the requests that the servers got.
namespace etcd_test {
namespace {

using namespace std::chrono_literals;
using holdfast::lease;

class etcd_recipe : public testing::Test {
 protected:
  std::string url(const std::string& rest = "?session=10s") const {
    return calm_cluster().url(base_ + rest);
  }
  std::string through(const harness::fault_proxy& proxy) const {
    return "etcd://127.0.0.1:" + std::to_string(proxy.port()) + base_ +
           "?session=10s&command_timeout=500ms";
  }
  const std::string base_ = fresh_base();
};

TEST_F(etcd_recipe, holder_and_waiter_are_keys_that_a_person_can_read) {
  auto here = holdfast::open(url());
  auto there = holdfast::open(url());
  holdfast::mutex one{here, "order/1000", {.reason = "billing"}};
  holdfast::mutex two{there, "order/1000", {.reason = "the next"}};
  lease held = one.acquire();
  std::thread waiter([&] { (void)two.acquire(); });
  const std::string name = base_ + "/order%2F1000";
  harness::eventually("two keys", [&] { return count_below(name) == 2; });
  const auto all = calm_cluster().ctl("get --prefix " + name);
  EXPECT_NE(all.find("billing"), std::string::npos) << all;
  EXPECT_NE(all.find("the next"), std::string::npos) << all;
  EXPECT_NE(all.find(std::to_string(::getpid())), std::string::npos) << all;
  held = {};
  waiter.join();
  EXPECT_EQ(count_below(base_), 0) << "a name that nobody uses leaves nothing";
}

TEST_F(etcd_recipe, an_unlock_wakes_one_of_two_hundred_that_wait) {
  constexpr std::size_t crowd = 200;
  const auto patient = url("?session=1m&command_timeout=20s");  // two hundred, on a loaded machine
  std::array<holdfast::session, 4> sessions{holdfast::open(patient), holdfast::open(patient),
                                            holdfast::open(patient), holdfast::open(patient)};
  holdfast::fair_mutex first{sessions[0], "herd"};
  lease held = first.acquire();
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < crowd; ++i) {
    threads.emplace_back([&, i] {
      holdfast::fair_mutex mine{sessions[i % 4], "herd"};
      (void)mine.acquire();
    });
  }
  harness::eventually("all wait", [&] { return sessions[0].show("herd").waiters.size() == crowd; });
  const long before = calm_cluster().counted("etcd_debugging_mvcc_events_total");
  held = {};
  for (auto& t : threads) t.join();
  // Each departure but the last was watched by the next waiter, and by nobody else.
  EXPECT_LE(calm_cluster().counted("etcd_debugging_mvcc_events_total") - before,
            static_cast<long>(crowd));
}

TEST_F(etcd_recipe, a_queue_entry_with_a_lost_reply_is_found_again_and_not_left) {
  harness::fault_proxy proxy(calm_cluster().port(0));
  auto here = holdfast::open(through(proxy));
  holdfast::mutex lock{here, "ghost"};
  (void)lock.acquire();
  for (int i = 0; i < 5; ++i) {
    proxy.with([](harness::relay& r) { r.cut_after(harness::way::down, 0); });
    const lease held = lock.acquire();
    EXPECT_EQ(count_below(base_ + "/ghost"), 1);
    EXPECT_EQ(here.show("ghost").holders.size(), 1U);
  }
  harness::eventually("nothing is left", [&] { return count_below(base_ + "/ghost") == 0; });
}

TEST_F(etcd_recipe, an_upgraded_reader_keeps_out_later_contenders_and_leaves_nothing) {
  auto here = holdfast::open(url());
  auto there = holdfast::open(url());
  holdfast::shared_mutex one{here, "up"};
  holdfast::shared_mutex two{there, "up"};
  lease held = one.acquire_shared();
  ASSERT_TRUE(one.try_upgrade(held));
  EXPECT_FALSE(two.try_acquire_shared());
  one.downgrade(held);
  EXPECT_TRUE(two.try_acquire_shared());
  ASSERT_TRUE(one.try_upgrade(held));
  EXPECT_EQ(count_below(base_ + "/up"), 2);
  held = {};
  EXPECT_EQ(count_below(base_ + "/up"), 0);
}

TEST_F(etcd_recipe, fences_grow_over_all_names_of_the_servers) {
  auto here = holdfast::open(url());
  std::uint64_t last = 0;
  for (const char* name : {"a", "b", "a", "c", "a"}) {
    const auto fence = holdfast::mutex(here, name).acquire().fence();
    EXPECT_GT(fence, last);
    last = fence;
  }
}

TEST_F(etcd_recipe, a_latch_is_kept_by_its_waiters_and_then_by_the_servers_for_its_time) {
  auto here = holdfast::open(url());
  holdfast::latch brief{here, "brief", 2, {.keep = 1s}};
  brief.count_down();
  EXPECT_EQ(count_below(base_ + "/brief"), 1);
  harness::eventually("it is forgotten", [&] { return count_below(base_ + "/brief") == 0; });
}

// Compaction removed the history in which a watch from the revision that was read would begin.
TEST_F(etcd_recipe, compaction_during_the_wait_costs_no_waiter_its_turn) {
  auto here = holdfast::open(url());
  auto there = holdfast::open(url());
  holdfast::mutex one{here, "job"};
  holdfast::mutex two{there, "job"};
  lease held = one.acquire();
  std::thread waiter([&] { EXPECT_TRUE(two.acquire()); });
  harness::eventually("one waits", [&] { return here.show("job").waiters.size() == 1; });
  const auto status = calm_cluster().ctl("endpoint status -w fields");
  const auto at = status.find("\"Revision\" : ");
  ASSERT_NE(at, std::string::npos) << status;
  (void)calm_cluster().ctl("compact --physical " +
                           std::to_string(std::stol(status.substr(at + 13))));
  held = {};
  waiter.join();
}

TEST_F(etcd_recipe, an_unsupported_primitive_is_refused_at_construction_by_name) {
  auto here = holdfast::open(url());
  holdfast::shared_mutex_options o;
  o.preference = holdfast::preference::writer;
  auto e = thrown_by([&] { holdfast::shared_mutex(here, "n", o); });
  EXPECT_EQ(e.reason(), holdfast::errc::unsupported);
  EXPECT_NE(std::string(e.what()).find("etcd://"), std::string::npos) << e.what();
  e = thrown_by([&] { holdfast::expiring_semaphore(here, "n", 2); });
  EXPECT_EQ(e.reason(), holdfast::errc::unsupported);
}

}  // namespace
}  // namespace etcd_test
