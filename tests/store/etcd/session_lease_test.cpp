#include "store/etcd/session_lease.hpp"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <holdfast/testing.hpp>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/store_url.hpp"
#include "harness/eventually.hpp"
#include "harness/fault_proxy.hpp"
#include "store/etcd/calls.hpp"
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
  /// Lets the servers elect another leader.
  static void begin_term() {
    const auto former = term();
    std::istringstream members(calm_cluster().ctl("member list"));
    for (std::string one; term() == former && std::getline(members, one);) {
      (void)calm_cluster().ctl("move-leader " + one.substr(0, one.find(',')));
    }
    EXPECT_GT(term(), former);
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

// If each renewal and the next request of a lock were in different terms, none would be proved.
TEST_F(etcd_session_leases, a_renewal_in_another_term_is_proved_at_once) {
  for (int i = 0; i < 3; ++i) {
    const auto before = lease_->safe_until();
    begin_term();
    renew();
    harness::eventually("it is proven", [&] { return lease_->safe_until() > before; });
  }
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

/// A member that grants a lease, and answers the keep-alives with these TTLs in turn.
class fake_member final : public grpc::CallbackGenericService {
 public:
  explicit fake_member(std::vector<std::int64_t> ttls) : ttls_(std::move(ttls)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
  }
  ~fake_member() override { server_->Shutdown(); }
  fake_member(const fake_member&) = delete;

  int port() const { return port_; }
  std::size_t asked() const { return asked_; }
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* to) override {
    return new call(*this, to->method());
  }

 private:
  class call final : public grpc::ServerGenericBidiReactor {
   public:
    call(fake_member& of, std::string method) : of_(of), method_(std::move(method)) {
      StartRead(&request_);
    }
    void OnReadDone(bool) override {
      const grpc::Slice text(of_.answer(method_));
      answer_ = grpc::ByteBuffer(&text, 1);
      StartWriteAndFinish(&answer_, {}, grpc::Status::OK);
    }
    void OnDone() override { delete this; }

   private:
    fake_member& of_;
    const std::string method_;
    grpc::ByteBuffer request_, answer_;
  };

  // Both answers have the lease in field 2, and the TTL in field 3, which is left out if it is 0.
  std::string answer(const std::string& method) {
    std::int64_t ttl = 80;
    if (method == etcd::method::keep_alive && asked_ < ttls_.size()) ttl = ttls_[asked_++];
    std::string said{'\x10', '\x07'};
    if (ttl != 0) said += {'\x18', static_cast<char>(ttl)};
    return said;
  }

  const std::vector<std::int64_t> ttls_;
  std::atomic<std::size_t> asked_{0};
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

/// Whether a lease that is kept alive with these answers is over after the last one.
bool is_over_after(const std::vector<std::int64_t>& ttls) {
  fake_member member(ttls);
  const auto here = "etcd://127.0.0.1:" + std::to_string(member.port()) + "/locks";
  auto o = etcd::read_options(*holdfast::base::parse_url(here)).value();
  holdfast::testing::fake_clock clock;
  o.clock = &clock;
  o.session = 80s;
  o.command_timeout = 1h;  // this clock runs ahead of the member's answers
  etcd::channel to(o);
  const auto lease = etcd::session_lease::grant(to, [] {}).value();
  harness::eventually("all are asked for", [&] {
    clock.advance(100ms);
    return member.asked() == ttls.size() || lease->over();
  });
  EXPECT_EQ(member.asked(), ttls.size());
  if (ttls.back() == 0) harness::eventually("it is over", [&] { return lease->over(); });
  return lease->over();
}

// A leader that was just elected may not have applied the grant yet.
TEST(etcd_session_lease, that_a_member_does_not_know_is_asked_for_once_more) {
  EXPECT_FALSE(is_over_after({0, 80}));
  EXPECT_FALSE(is_over_after({80, 0, 80, 0, 80}));
  EXPECT_TRUE(is_over_after({80, 0, 0}));
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
