#include "harness/consensus_faults.hpp"
#include "harness/eventually.hpp"
#include "store/zookeeper/fixture.hpp"

// Servers that die and come back, networks that are cut, processes that sleep: nobody acquires a
// lock while another process may still believe that it holds it.
namespace zookeeper_test {
namespace {

using holdfast::lease;

TEST(zookeeper_faults, restarts_of_leaders_never_grant_a_lock_twice) {
  harness::zookeeper_ensemble servers;
  harness::leaders_die_and_come_back(servers);
}

TEST(zookeeper_faults, without_a_majority_no_session_enters_and_the_holder_knows_in_time) {
  harness::zookeeper_ensemble servers;
  harness::the_majority_is_gone(servers);
}

// The member continues to answer for a while, and keeps the connection; but nothing that it answers
// counts.
TEST(zookeeper_faults, a_member_that_has_lost_the_others_does_not_keep_a_lease_alive) {
  harness::zookeeper_ensemble servers;
  const int follower = (servers.leader() + 1) % 3;
  auto here = holdfast::open(servers.url_at(servers.port(follower), harness::brief));
  const lease held = holdfast::mutex(here, "job").acquire();
  for (int i = 0; i < 3; ++i) {
    if (i != follower) servers.stop(i);
  }
  harness::eventually("the loss is told", [&] { return held.lost().stop_requested(); });
  EXPECT_NE(servers.ask(follower, "srvr").find("Mode: follower"), std::string::npos)
      << "it still served";
  for (int i = 0; i < 3; ++i) servers.resume(i);
}

TEST(zookeeper_faults, a_lock_of_a_sleeping_process_passes_on_with_a_greater_fence) {
  harness::a_holder_sleeps(calm_ensemble(), fresh_base());
}

TEST(zookeeper_faults, the_entry_of_a_killed_process_ends_with_its_session) {
  harness::a_holder_is_killed(calm_ensemble(), fresh_base());
}

TEST(zookeeper_faults, calls_end_at_their_limit_while_the_server_hangs) {
  harness::limited_calls_to_a_server_that_hangs(calm_ensemble(), fresh_base());
}

TEST(zookeeper_faults, tries_time_out_while_the_server_hangs) {
  harness::tries_at_a_server_that_hangs(calm_ensemble(), fresh_base());
}

TEST(zookeeper_faults, a_holder_that_is_cut_off_loses_the_lock_before_the_next_grant) {
  harness::a_holder_is_cut_off(calm_ensemble(), fresh_base(), "?session=2s&command_timeout=500ms");
}

TEST(zookeeper_faults, a_connection_that_is_lost_and_found_again_costs_nothing) {
  harness::connections_are_lost_and_found(calm_ensemble(), fresh_base());
}

// By an operator; servers that have lost their data have none, either. The sessions of programs go
// on.
TEST(zookeeper_faults, a_base_path_that_was_removed_is_made_again) {
  const std::string above = fresh_base(), base = above + "/locks";
  const auto session = holdfast::open("zookeeper://" + calm_ensemble().hosts() + base);
  const tree operators(calm_ensemble().hosts());
  const auto remove_it = [&] { operators.remove_all(above); };
  remove_it();
  EXPECT_NO_THROW(EXPECT_TRUE(holdfast::mutex(session, "job").try_acquire()));
  remove_it();
  EXPECT_NO_THROW(holdfast::latch(session, "open", 1).count_down());
  remove_it();
  EXPECT_NO_THROW(EXPECT_TRUE(session.names().empty()));
}

// They refuse the client of this session, which has seen more than they know.
TEST(zookeeper_faults, a_session_goes_on_after_the_servers_have_lost_their_data) {
  harness::zookeeper_ensemble servers;
  const auto session = holdfast::open(servers.url(harness::brief));
  const lease held = holdfast::mutex(session, "job").acquire();
  for (int i = 0; i < 3; ++i) servers.kill(i);
  for (int i = 0; i < 3; ++i) servers.lose_data(i);
  for (int i = 0; i < 3; ++i) servers.start(i);
  harness::eventually("the loss is told", [&] { return held.lost().stop_requested(); });
  harness::eventually("a new session", [&] {
    try {
      return holdfast::mutex(session, "job").try_acquire().has_value();
    } catch (const holdfast::error&) {
      return false;
    }
  });
}

// The client itself leaves the member after two thirds of the session; the lease ends after two
// fifths.
TEST(zookeeper_faults, a_member_that_falls_silent_is_left_before_its_locks_are_lost) {
  harness::fault_proxy one(calm_ensemble().port(0)), two(calm_ensemble().port(1));
  const std::string both = "zookeeper://127.0.0.1:" + std::to_string(one.port()) +
                           ",127.0.0.1:" + std::to_string(two.port());
  auto here = holdfast::open(both + fresh_base() + "?session=40s&command_timeout=1s");
  const lease held = holdfast::mutex(here, "job").acquire();
  const bool at_one = one.count().open > 0;
  auto& silent = at_one ? one : two;
  auto& other = at_one ? two : one;
  silent.with([](holdfast::faultproxy::relay& r) {
    r.stall(holdfast::faultproxy::way::up);
    r.stall(holdfast::faultproxy::way::down);
  });
  harness::eventually("the other is asked", [&] { return other.count().accepted > 0; });
  EXPECT_FALSE(held.lost().stop_requested());
  const auto left = held.remaining();
  harness::eventually("it is renewed there", [&] { return held.remaining() > left; });
  EXPECT_NO_THROW(held.check());
}

TEST(zookeeper_faults, a_request_that_arrives_after_its_wait_ended_leaves_nothing) {
  harness::fault_proxy proxy(calm_ensemble().port(0));
  harness::late_requests_leave_nothing(calm_ensemble(), fresh_base(), proxy,
                                       calm_ensemble().url_at(proxy.port(), ""));
}

TEST(zookeeper_faults, fifty_waiters_that_are_cut_off_at_once_are_all_served) {
  harness::fifty_are_cut_off_at_once(calm_ensemble(), fresh_base());
}

}  // namespace
}  // namespace zookeeper_test
