#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "harness/consensus_faults.hpp"
#include "harness/eventually.hpp"
#include "store/etcd/fixture.hpp"

// Servers that die and come back, networks that are cut, processes that sleep: nobody acquires a
// lock while another process may still believe that it holds it.
namespace etcd_test {
namespace {

using holdfast::errc;
using holdfast::lease;

TEST(etcd_faults, restarts_of_leaders_never_grant_a_lock_twice) {
  harness::etcd_cluster servers;
  harness::leaders_die_and_come_back(servers);
}

TEST(etcd_faults, without_a_majority_no_session_enters_and_the_holder_knows_in_time) {
  harness::etcd_cluster servers;
  harness::the_majority_is_gone(servers);
}

// A leader that slept answers keep-alives when it wakes, before it learns that there is another
// leader.
TEST(etcd_faults, a_leader_that_is_cut_off_does_not_keep_a_lease_alive) {
  harness::etcd_cluster servers;
  const int leader = servers.leader();
  auto here = holdfast::open(servers.url_at(servers.port(leader), harness::brief));
  const lease held = holdfast::mutex(here, "job").acquire();
  for (int i = 0; i < 3; ++i) {
    if (i != leader) servers.stop(i);
  }
  harness::eventually("the loss is told", [&] { return held.lost().stop_requested(); });
  for (int i = 0; i < 3; ++i) servers.resume(i);
}

TEST(etcd_faults, a_session_goes_on_after_the_servers_have_lost_their_data) {
  harness::etcd_cluster servers;
  const auto session = holdfast::open(servers.url(harness::brief));
  const lease held = holdfast::mutex(session, "job").acquire();
  for (int i = 0; i < 3; ++i) servers.kill(i);
  for (int i = 0; i < 3; ++i) servers.lose_data(i);
  for (int i = 0; i < 3; ++i) servers.start(i);
  harness::eventually("the loss is told", [&] { return held.lost().stop_requested(); });
  harness::eventually("a new lease", [&] {
    try {
      return holdfast::mutex(session, "job").try_acquire().has_value();
    } catch (const holdfast::error&) {
      return false;
    }
  });
}

// The key of a lock that was released since is there again, and so is the lease of its session.
TEST(etcd_faults, a_lock_released_after_a_backup_is_free_when_the_backup_was_restored) {
  harness::etcd_cluster servers(1);
  const auto session = holdfast::open(servers.url(harness::brief));
  holdfast::mutex lock{session, "job"};
  lock.lock();
  servers.kill(0);
  servers.save_data(0);
  servers.start(0);
  servers.until_whole();
  lock.unlock();
  servers.kill(0);
  servers.restore_data(0);
  servers.start(0);
  servers.until_whole();
  const auto other = holdfast::open(servers.url(harness::brief));
  EXPECT_TRUE(holdfast::mutex(other, "job").try_lock_for(std::chrono::minutes(1)));
}

TEST(etcd_faults, a_lock_of_a_sleeping_process_passes_on_with_a_greater_fence) {
  harness::a_holder_sleeps(calm_cluster(), fresh_base());
}

TEST(etcd_faults, the_entry_of_a_killed_process_ends_with_its_lease) {
  harness::a_holder_is_killed(calm_cluster(), fresh_base());
}

TEST(etcd_faults, calls_end_at_their_limit_while_the_server_hangs) {
  harness::limited_calls_to_a_server_that_hangs(calm_cluster(), fresh_base());
}

TEST(etcd_faults, tries_time_out_while_the_server_hangs) {
  harness::tries_at_a_server_that_hangs(calm_cluster(), fresh_base());
}

TEST(etcd_faults, a_holder_that_is_cut_off_loses_the_lock_before_the_next_grant) {
  harness::a_holder_is_cut_off(calm_cluster(), fresh_base(), "?session=1s&command_timeout=500ms");
}

TEST(etcd_faults, a_connection_that_is_lost_and_found_again_costs_nothing) {
  harness::connections_are_lost_and_found(calm_cluster(), fresh_base());
}

// The first bytes of the server arrive after 440 ms, more than a quarter of command_timeout.
TEST(etcd_faults, a_connection_may_take_longer_than_a_share_of_command_timeout) {
  harness::fault_proxy network(calm_cluster().port(0));
  network.with([](auto& relay) { relay.set_latency(std::chrono::milliseconds(220)); });
  const auto far = calm_cluster().url_at(network.port(), fresh_base() + "?command_timeout=1600ms");
  const auto session = holdfast::open(far, {.store_timeout = std::chrono::milliseconds(0)});
  EXPECT_EQ(network.count().accepted, 1U);
}

TEST(etcd_faults, a_request_that_arrives_after_its_repetition_was_released_leaves_nothing) {
  harness::fault_proxy proxy(calm_cluster().port(0));
  harness::late_requests_leave_nothing(calm_cluster(), fresh_base(), proxy,
                                       "etcd://127.0.0.1:" + std::to_string(proxy.port()) +
                                           ",127.0.0.1:" + std::to_string(calm_cluster().port(1)));
}

TEST(etcd_faults, a_request_that_arrives_after_its_wait_ended_leaves_nothing) {
  harness::fault_proxy proxy(calm_cluster().port(0));
  harness::late_requests_leave_nothing(calm_cluster(), fresh_base(), proxy,
                                       calm_cluster().url_at(proxy.port(), ""));
}

// A request under way when its repetition was answered makes no key again, by which the holder
// would go on after the lock was taken away.
TEST(etcd_faults, a_request_that_arrives_after_a_force_release_restores_no_hold) {
  constexpr std::size_t count = 16;
  const auto name = [](std::size_t i) { return "job" + std::to_string(i); };
  const auto base = fresh_base();
  harness::fault_proxy proxy(calm_cluster().port(0));
  auto here = holdfast::open("etcd://127.0.0.1:" + std::to_string(proxy.port()) +
                             ",127.0.0.1:" + std::to_string(calm_cluster().port(1)) + base +
                             "?session=30s&command_timeout=1s");
  auto there = holdfast::open(calm_cluster().url(base + "?session=30s&command_timeout=10s"));
  proxy.with([](auto& relay) { relay.stall(harness::way::up); });
  std::vector<lease> former(count), now(count);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i)
    threads.emplace_back([&, i] { former[i] = holdfast::mutex(here, name(i)).acquire(); });
  for (auto& t : threads) t.join();
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(there.force_release(name(i)), 1U);
    now[i] = holdfast::mutex(there, name(i)).acquire();
  }
  proxy.heal();
  for (std::size_t i = 0; i < count; ++i) {
    harness::eventually("the loss is told", [&] { return former[i].lost().stop_requested(); });
    EXPECT_NO_THROW(now[i].check());
  }
}

// The connection is cut after more and more bytes of the answers, until the cut loses the release's
// answer.
TEST(etcd_faults, a_release_whose_answer_was_lost_has_released) {
  harness::fault_proxy network(calm_cluster().port(0));
  auto here = holdfast::open("etcd://127.0.0.1:" + std::to_string(network.port()) + "," +
                             calm_cluster().hosts() + fresh_base());
  std::size_t cut = 0;
  for (std::size_t pass = 0; pass < 200; pass += 10) {
    lease held = holdfast::mutex(here, "job").acquire();
    network.with([&](auto& relay) { relay.cut_after(harness::way::down, pass); });
    EXPECT_FALSE(held.release()) << pass;
    cut = network.count().cut;
  }
  EXPECT_GT(cut, 0U) << "it is talked to over another way";
}

TEST(etcd_faults, a_lease_that_an_operator_revoked_is_noticed_and_the_next_one_works) {
  const auto base = fresh_base();
  auto here = holdfast::open(calm_cluster().url(base + "?session=3s"));
  holdfast::mutex lock{here, "job"};
  const lease held = lock.acquire();
  const auto key = keys_below(base);
  const auto from = key.rfind('/') + 1;
  (void)calm_cluster().ctl("lease revoke " + key.substr(from, key.find('.', from) - from));
  harness::eventually("the loss is told", [&] { return held.lost().stop_requested(); });
  EXPECT_GT(lock.acquire().fence(), held.fence());
}

TEST(etcd_faults, fifty_waiters_that_are_cut_off_at_once_are_all_served) {
  harness::fifty_are_cut_off_at_once(calm_cluster(), fresh_base());
}

TEST(etcd_faults, a_forked_child_cannot_open_etcd_and_gets_a_clear_error) {
  auto here = holdfast::open(calm_cluster().url(fresh_base()));
  const pid_t child = ::fork();
  if (child == 0) {
    int answer = 1;
    try {
      (void)holdfast::open(here.url());
    } catch (const holdfast::error& e) {
      answer = e.reason() == errc::forked ? 0 : 2;
    }
    ::_exit(answer);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(holdfast::mutex(here, "job").try_acquire());
}

}  // namespace
}  // namespace etcd_test
