#include <array>
#include <thread>

#include "harness/eventually.hpp"
#include "harness/fault_proxy.hpp"
#include "harness/process.hpp"
#include "harness/wire_cost.hpp"
#include "store/zookeeper/fixture.hpp"

// The tree, and the requests that the servers got.
namespace zookeeper_test {
namespace {

using namespace std::chrono_literals;
using holdfast::lease;

class recipe : public testing::Test {
 protected:
  std::string url(const std::string& rest = "?session=10s") const {
    return calm_ensemble().url(base_ + rest);
  }
  long counted(const std::string& key) const {
    long sum = 0;
    for (int i = 0; i < calm_ensemble().size(); ++i) sum += calm_ensemble().counted(i, key);
    return sum;
  }
  const std::string base_ = fresh_base();
  const tree tree_{calm_ensemble().hosts()};
};

TEST_F(recipe, holder_and_waiter_are_nodes_that_a_person_can_read) {
  auto here = holdfast::open(url());
  auto there = holdfast::open(url());
  holdfast::mutex one{here, "order/1000", {.reason = "billing"}};
  holdfast::mutex two{there, "order/1000", {.reason = "the next"}};
  lease held = one.acquire();
  std::thread waiter([&] { (void)two.acquire(); });
  const std::string name = base_ + "/order%2F1000";
  harness::eventually("two nodes", [&] { return tree_.children(name).size() == 2; });
  std::string all;
  for (const auto& node : tree_.children(name)) all += tree_.data(name + "/" + node) + "\n";
  EXPECT_NE(all.find("billing"), std::string::npos) << all;
  EXPECT_NE(all.find("the next"), std::string::npos) << all;
  EXPECT_NE(all.find(std::to_string(::getpid())), std::string::npos) << all;
  held = {};
  waiter.join();
}

TEST_F(recipe, a_name_that_is_no_longer_used_leaves_no_node) {
  auto here = holdfast::open(url());
  for (const char* name : {"a", "b", "c"}) (void)holdfast::mutex(here, name).acquire();
  harness::eventually("nothing is left", [&] { return tree_.children(base_).empty(); });
  EXPECT_TRUE(holdfast::mutex(here, "a").acquire()) << "and it can be used again";
}

TEST_F(recipe, an_unlock_wakes_one_of_two_hundred_that_wait) {
  constexpr std::size_t crowd = 200;
  const auto patient = url("?session=20s&command_timeout=10s");  // two hundred, on a loaded machine
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
  const auto connected = [&] { return counted("connection_request_count"); };
  const long before = counted("sum_node_deleted_watch_count");
  const long connected_before = connected();
  held = {};
  for (auto& t : threads) t.join();
  // Each departure but the last was watched by the next waiter, and by nobody else. (A session that
  // changes its server on a busy machine sets its watches there, too.)
  const long twice = (connected() - connected_before) * static_cast<long>(crowd / sessions.size());
  EXPECT_LE(counted("sum_node_deleted_watch_count") - before, static_cast<long>(crowd) + twice);
}

// The list is requested together with the queue entry: a session's requests are carried out in
// order.
TEST_F(recipe, a_free_lock_costs_one_round_trip_to_acquire_and_one_to_release) {
  harness::fault_proxy proxy(calm_ensemble().port(0));
  const auto s = holdfast::open("zookeeper://127.0.0.1:" + std::to_string(proxy.port()) + base_);
  EXPECT_EQ(harness::round_trips_of_a_free_lock(proxy, s), 2U);
}

TEST_F(recipe, a_queue_entry_with_a_lost_reply_is_found_again_and_not_left) {
  harness::fault_proxy proxy(calm_ensemble().port(0));
  const std::string through = "zookeeper://127.0.0.1:" + std::to_string(proxy.port()) + base_;
  auto here = holdfast::open(through + "?session=30s&command_timeout=10s");
  holdfast::mutex lock{here, "ghost"};
  (void)lock.acquire();
  for (int i = 0; i < 10; ++i) {
    proxy.with([](harness::relay& r) { r.cut_after(harness::way::down, 0); });
    const lease held = lock.acquire();
    EXPECT_EQ(tree_.children(base_ + "/ghost").size(), 1U);
    EXPECT_EQ(here.show("ghost").holders.size(), 1U);
  }
  harness::eventually("nothing is left", [&] { return tree_.children(base_ + "/ghost").empty(); });
}

TEST_F(recipe, a_try_whose_reply_was_lost_leaves_no_entry) {
  harness::fault_proxy proxy(calm_ensemble().port(0));
  const std::string through = "zookeeper://127.0.0.1:" + std::to_string(proxy.port()) + base_;
  auto here = holdfast::open(through + "?session=10s&command_timeout=500ms");
  holdfast::mutex lock{here, "ghost"};
  (void)lock.acquire();
  proxy.with([](harness::relay& r) { r.cut_after(harness::way::down, 0); });
  const auto e = thrown_by([&] { (void)lock.try_acquire(); });
  EXPECT_EQ(e.reason(), holdfast::errc::unavailable) << e.what();
  EXPECT_TRUE(e.outcome_unknown());
  harness::eventually("nothing is left", [&] { return tree_.children(base_ + "/ghost").empty(); });
}

TEST_F(recipe, an_upgraded_reader_keeps_out_later_contenders_and_leaves_nothing) {
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
  EXPECT_EQ(tree_.children(base_ + "/up").size(), 2U);
  held = {};
  EXPECT_TRUE(tree_.children(base_ + "/up").empty());
}

TEST_F(recipe, an_unsupported_primitive_is_refused_at_construction_by_name) {
  auto here = holdfast::open(url());
  holdfast::shared_mutex_options o;
  o.preference = holdfast::preference::writer;
  auto e = thrown_by([&] { holdfast::shared_mutex(here, "n", o); });
  EXPECT_EQ(e.reason(), holdfast::errc::unsupported);
  EXPECT_NE(std::string(e.what()).find("zookeeper://"), std::string::npos) << e.what();
  e = thrown_by([&] { holdfast::expiring_semaphore(here, "n", 2); });
  EXPECT_EQ(e.reason(), holdfast::errc::unsupported);
  EXPECT_NE(std::string(e.what()).find("expiring_semaphore"), std::string::npos) << e.what();
}

}  // namespace
}  // namespace zookeeper_test
