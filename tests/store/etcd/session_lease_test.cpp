#include "store/etcd/session_lease.hpp"

#include <atomic>
#include <holdfast/testing.hpp>
#include <thread>
#include <vector>

#include "base/store_url.hpp"
#include "harness/eventually.hpp"
#include "harness/fault_proxy.hpp"
#include "store/etcd/etcd.hpp"
#include "store/etcd/fixture.hpp"

// How long a session trusts its lease. The servers' time passes; here time stands still until it is
// advanced.
namespace etcd_test {
namespace {

using namespace std::chrono_literals;
namespace etcd = holdfast::store::etcd;

class etcd_session_leases : public testing::Test {
 protected:
  static constexpr auto lasts = 80s;
  static constexpr auto renewed_every = lasts / 8;

  etcd::etcd_options options() {
    const auto here = "etcd://127.0.0.1:" + std::to_string(network_.port()) + fresh_base();
    auto o = etcd::read_options(*holdfast::base::parse_url(here)).value();
    o.session = lasts;
    o.command_timeout = 60s;
    o.clock = &clock_;
    return o;
  }
  static std::uint64_t term() {
    const auto said = calm_cluster().ctl("endpoint status -w json");
    const std::string key = "\"raftTerm\":";
    return std::stoull(said.substr(said.find(key) + key.size()));
  }
  static long renewals() { return calm_cluster().counted("etcd_debugging_lease_renewed_total"); }
  /// Waits until the session's own thread has renewed the lease at the servers.
  void renew() {
    const auto before = renewals();
    clock_.advance(renewed_every);
    harness::eventually("renewed", [&] { return renewals() > before; });
  }

  holdfast::testing::fake_clock clock_;
  harness::fault_proxy network_{calm_cluster().port(0)};
  etcd::channel to_{options()};
  const std::shared_ptr<etcd::session_lease> lease_ =
      etcd::session_lease::grant(to_, [] {}).value();
};

TEST_F(etcd_session_leases, a_renewal_is_proved_only_by_a_later_request_within_its_term) {
  const auto before = lease_->safe_until();
  const auto earlier = clock_.now();
  renew();
  harness::eventually("it is proven", [&] {
    const auto now = term();
    lease_->agreed(now + 1'000, clock_.now());
    EXPECT_EQ(lease_->safe_until(), before) << "of another leader";
    lease_->agreed(now, earlier);
    EXPECT_EQ(lease_->safe_until(), before) << "asked before";
    lease_->agreed(now, clock_.now());
    return lease_->safe_until() > before || testing::Test::HasFailure();
  });
}

TEST_F(etcd_session_leases, the_time_counts_from_before_it_was_renewed) {
  network_.with([](auto& relay) { relay.set_latency(500ms); });
  renew();
  const auto sent = clock_.now();
  clock_.advance(2s);  // while the answer is on its way
  harness::eventually("it is proven", [&] {
    lease_->agreed(term(), clock_.now());
    return lease_->safe_until() >= sent + lasts * 3 / 4;
  });
  EXPECT_EQ(lease_->safe_until(), sent + lasts * 3 / 4);
}

// The first request finds out, for the later ones, that nobody answers.
TEST(etcd_sessions, are_requested_once_for_all_callers_while_the_servers_hang) {
  constexpr int many = 8;
  harness::fault_proxy network(calm_cluster().port(0));
  const auto here = "etcd://127.0.0.1:" + std::to_string(network.port()) + fresh_base();
  auto o = etcd::read_options(*holdfast::base::parse_url(here)).value();
  o.session = 4s;
  o.command_timeout = 3s;
  o.clock = &holdfast::real_clock();
  const auto store = etcd::open_etcd(o).value();
  std::atomic<bool> is_over{false};
  ASSERT_TRUE(store->contenders("job", holdfast::store::contender_store::as_of::latest,
                                [&] { is_over = true; }));
  (void)calm_cluster().ctl("lease revoke " + store->peer().substr(1));
  harness::eventually("the session is over", [&] { return is_over.load(); });
  const auto granted = [] { return calm_cluster().counted("etcd_debugging_lease_granted_total"); };
  const auto before = granted();
  network.with([](auto& relay) { relay.stall(harness::way::down); });
  std::vector<std::thread> all;
  for (std::uint64_t i = 1; i <= many; ++i) {
    all.emplace_back([&store, i] {
      holdfast::store::contender who;
      who.owner = {i, i};
      EXPECT_FALSE(store->enter("job", who, {}, {}));
    });
  }
  for (auto& one : all) one.join();
  network.heal();
  EXPECT_LT(granted() - before, 3 * many) << "on three servers";
}

}  // namespace
}  // namespace etcd_test
