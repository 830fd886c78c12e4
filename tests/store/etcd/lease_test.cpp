#include <algorithm>
#include <holdfast/guard.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "harness/concurrently.hpp"
#include "harness/eventually.hpp"
#include "harness/fault_proxy.hpp"
#include "store/etcd/etcd.hpp"
#include "store/etcd/fixture.hpp"

// Etcd's leases and watches: whose they are, and that none is left behind.
namespace etcd_test {
namespace {

using namespace std::chrono_literals;
using holdfast::lease;
using holdfast::guard::standing_of;

/// The lease of a key, as the key's name contains it.
std::string lease_in(const std::string& key) {
  const auto from = key.rfind('/') + 1;
  return key.substr(from, key.find('.', from) - from);
}

void revoke(const std::string& id) { (void)calm_cluster().ctl("lease revoke " + id); }

long watchers() { return calm_cluster().counted("etcd_debugging_mvcc_watcher_total"); }

// The key exists, but no lease keeps it.
holdfast::store::etcd::etcd_options options_at(const std::string& node) {
  return holdfast::store::etcd::read_options(*holdfast::base::parse_url("etcd://" + node)).value();
}

/// The lease, as etcdctl names it, of a latch's record below that base; empty if there is none.
std::string lease_of_record(const std::string& base, const std::string& name = "latch") {
  const auto said = calm_cluster().ctl("get -w json '" + base + "/" + name + "/record'");
  if (said.find("\"lease\":") == std::string::npos) return {};
  const auto at = said.find("\"lease\":") + 8;
  char hex[24];
  std::snprintf(hex, sizeof hex, "%llx", std::stoull(said.substr(at)));
  return hex;
}

TEST(etcd_leases, a_hold_of_an_ended_lease_does_not_depend_on_the_next_lease) {
  const auto base = fresh_base();
  auto here = holdfast::open(calm_cluster().url(base + "?session=20s"));
  const lease held = holdfast::mutex(here, "job", {.lease = 2s}).acquire();
  const auto key = standing_of(held).key;
  (void)calm_cluster().ctl("put '" + key + "' text");  // it has no lease now
  revoke(lease_in(key));
  const lease other = holdfast::mutex(here, "other").acquire();
  ASSERT_NE(lease_in(standing_of(other).key), lease_in(key));
  harness::eventually("the loss is told", [&] { return held.lost().stop_requested(); });
  harness::eventually("what was left is gone", [&] { return count_below(base + "/job") == 0; });
  EXPECT_NO_THROW(other.check());
}

// No later call of the session has begun another lease yet.
TEST(etcd_leases, what_depends_on_a_revoked_lease_is_certain_for_no_time) {
  using namespace holdfast::store;
  auto options = options_at(calm_cluster().hosts() + fresh_base());
  options.clock = &holdfast::real_clock();
  options.session = 4s;
  const auto store = etcd::open_etcd(options).value();
  contender who;
  who.owner = {1, 2};
  const auto in = store->enter("job", who, {}, {}).value();
  EXPECT_GT(store->safe_until(in.session), options.clock->now());
  revoke(lease_in("/" + in.node));
  harness::eventually("it has ended",
                      [&] { return store->safe_until(in.session) == holdfast::boot_time{}; });
}

TEST(etcd_leases, the_later_of_two_makers_of_a_record_leaves_no_lease) {
  using namespace holdfast::store;
  auto options = options_at(calm_cluster().hosts() + fresh_base());
  options.clock = &holdfast::real_clock();
  const auto store = etcd::open_etcd(options).value();
  const auto leases = [] {
    const auto all = calm_cluster().ctl("lease list");
    return std::count(all.begin(), all.end(), '\n');
  };
  ASSERT_TRUE(store->replace("latch", "one", -1, 3'600'000'000).value());
  const auto before = leases();
  EXPECT_FALSE(store->replace("latch", "two", -1, 3'600'000'000).value());
  // A lease of another test may have ended meanwhile.
  harness::eventually("none is left", [&] { return leases() <= before; });
  EXPECT_EQ(store->record("latch", false, nullptr).value().text, "one");
}

TEST(etcd_leases, a_record_goes_with_its_lease) {
  using namespace holdfast::store;
  auto options = options_at(calm_cluster().hosts() + fresh_base());
  options.clock = &holdfast::real_clock();
  const auto store = etcd::open_etcd(options).value();
  const auto made = store->replace("latch", "one", -1, 3'600'000'000).value();
  ASSERT_TRUE(made);
  const auto id = lease_of_record(options.base);
  ASSERT_NE(calm_cluster().ctl("lease timetolive " + id).find("granted"), std::string::npos);
  ASSERT_TRUE(store->replace("latch", {}, *made, 3'600'000'000).value());
  EXPECT_NE(calm_cluster().ctl("lease timetolive " + id).find("already expired"),
            std::string::npos);
}

TEST(etcd_leases, a_record_is_kept_for_the_longest_time_of_its_users) {
  using namespace holdfast::store;
  auto options = options_at(calm_cluster().hosts() + fresh_base());
  options.clock = &holdfast::real_clock();
  const auto store = etcd::open_etcd(options).value();
  const auto made = store->replace("latch", "one", -1, 10'000'000).value();
  ASSERT_TRUE(made);
  const auto first = lease_of_record(options.base);
  const auto longer = store->replace("latch", "two", *made, 3'600'000'000).value();
  ASSERT_TRUE(longer);
  const auto second = lease_of_record(options.base);
  EXPECT_NE(calm_cluster().ctl("lease timetolive " + first).find("already expired"),
            std::string::npos);
  EXPECT_NE(calm_cluster().ctl("lease timetolive " + second).find("granted with TTL(3600s)"),
            std::string::npos);
  const auto shorter = store->replace("latch", "three", *longer, 10'000'000).value();
  ASSERT_TRUE(shorter) << "the version is that of the record with its longer lease";
  EXPECT_EQ(lease_of_record(options.base), second);
  EXPECT_EQ(store->record("latch", false, nullptr).value().text, "three");
}

bool is_over(const std::string& lease) {
  return calm_cluster().ctl("lease timetolive " + lease).find("already expired") !=
         std::string::npos;
}

std::set<std::string> all_leases() {
  std::istringstream lines(calm_cluster().ctl("lease list"));
  std::set<std::string> all;
  std::string heading;
  std::getline(lines, heading);
  for (std::string id; std::getline(lines, id);) all.insert(id);
  return all;
}

// The answer to the request for the lease is late.
TEST(etcd_leases, a_record_whose_lease_ends_before_it_is_written_is_no_lost_session) {
  using namespace holdfast::store;
  harness::fault_proxy network(calm_cluster().port(0));
  auto options = options_at("127.0.0.1:" + std::to_string(network.port()) + fresh_base());
  options.clock = &holdfast::real_clock();
  options.command_timeout = 100s;
  const auto store = etcd::open_etcd(options).value();
  const auto before = all_leases();
  network.with([](auto& relay) { relay.stall(harness::way::down); });
  auto made = harness::concurrently([&] { return store->replace("latch", "one", -1, 1'000'000); });
  std::string id;
  harness::eventually("it has a lease", [&] {
    for (const auto& one : all_leases()) id = before.contains(one) ? id : one;
    return !id.empty();
  });
  harness::eventually("the lease ends", [&] { return is_over(id); });
  network.heal();
  const auto told = made.get();
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code, holdfast::errc::unavailable) << told.error().what;
  EXPECT_NE(told.error().what.find("the record's lease was over"), std::string::npos)
      << told.error().what;
}

// The connection is cut after more and more bytes of the answers, until the second answer is lost:
// the record exists then, and is requested again.
TEST(etcd_leases, an_unanswered_creation_of_a_record_succeeds_when_repeated) {
  using namespace holdfast::store;
  harness::fault_proxy network(calm_cluster().port(0));
  const auto base = fresh_base();
  const auto through = [&](const std::string& hosts) {
    auto options = options_at(hosts + base);
    options.clock = &holdfast::real_clock();
    return etcd::open_etcd(options).value();
  };
  const auto direct = calm_cluster().hosts();
  const auto witness = through(direct);
  bool late = false;
  for (std::size_t pass = 0; pass < 1'000 && !late; pass += 10) {
    const auto store = through("127.0.0.1:" + std::to_string(network.port()) + "," + direct);
    const auto name = "latch" + std::to_string(pass);
    network.with([&](auto& relay) { relay.cut_after(harness::way::down, pass); });
    const auto made = store->replace(name, "one", -1, 3'600'000'000);
    ASSERT_TRUE(made) << made.error().what;
    late = !made->has_value();
    EXPECT_EQ(witness->record(name, false, nullptr).value().text, "one") << pass;
  }
  EXPECT_TRUE(late) << "no such answer was lost";
}

/// The connection is cut after more and more bytes of the answers to one session's requests about
/// another's record, until all answers fit. The session continues over another connection.
class etcd_lost_answers : public testing::Test {
 protected:
  using contender_store = holdfast::store::contender_store;

  template <class Act, class Check>
  void at_each_byte(Act act, Check check) {
    for (std::size_t pass = 0; pass < 600; pass += 10) {
      const auto store =
          through("127.0.0.1:" + std::to_string(network_.port()) + "," + calm_cluster().hosts());
      const auto name = "latch" + std::to_string(pass);
      const auto made = witness_->replace(name, "one", -1, 1'800'000'000).value();
      ASSERT_TRUE(made);
      const auto first = lease_of_record(base_, name);
      network_.with([&](auto& relay) { relay.cut_after(harness::way::down, pass); });
      act(*store, name, *made);
      check(name, first, pass);
    }
  }
  const std::string& base() const { return base_; }
  contender_store& witness() const { return *witness_; }

 private:
  std::unique_ptr<contender_store> through(const std::string& hosts) const {
    auto options = options_at(hosts + base_);
    options.clock = &holdfast::real_clock();
    return holdfast::store::etcd::open_etcd(options).value();
  }

  harness::fault_proxy network_{calm_cluster().port(0)};
  const std::string base_ = fresh_base();
  const std::unique_ptr<contender_store> witness_ = through(calm_cluster().hosts());
};

TEST_F(etcd_lost_answers, a_removal_that_was_not_answered_leaves_no_lease) {
  at_each_byte([](auto& store, auto& name,
                  auto version) { (void)store.replace(name, {}, version, 1'800'000'000); },
               [&](auto& name, auto& first, auto pass) {
                 EXPECT_EQ(lease_of_record(base(), name), "") << pass;
                 EXPECT_TRUE(is_over(first)) << pass;
               });
}

TEST_F(etcd_lost_answers, a_change_to_a_longer_lease_that_was_not_answered_leaves_no_shorter_one) {
  holdfast::result<std::optional<contender_store::revision>> changed =
      std::optional<contender_store::revision>();
  int longer = 0;
  at_each_byte([&](auto& store, auto& name,
                   auto version) { changed = store.replace(name, "two", version, 3'600'000'000); },
               [&](auto& name, auto& first, auto pass) {
                 if (lease_of_record(base(), name) == first) return;
                 ++longer;
                 EXPECT_TRUE(is_over(first)) << pass;
                 if (!changed || !*changed) return;
                 EXPECT_TRUE(witness().replace(name, "three", **changed, 1'800'000'000).value())
                     << pass << ": not the version that it has now";
               });
  EXPECT_GT(longer, 0);
}

// No answer arrives any more until the network has healed.
TEST(etcd_leases, an_abandoned_lease_is_removed_when_its_record_is_used_again) {
  using namespace holdfast::store;
  for (const bool removes : {true, false}) {
    int unheard = 0;
    for (std::size_t pass = 0; pass < 1'000 && unheard == 0; pass += 10) {
      harness::fault_proxy network(calm_cluster().port(0));
      auto options = options_at("127.0.0.1:" + std::to_string(network.port()) + fresh_base());
      options.clock = &holdfast::real_clock();
      options.command_timeout = 500ms;
      const auto store = etcd::open_etcd(options).value();
      std::optional<contender_store::revision> made;
      std::string name;
      for (int attempt = 0; attempt < 60 && !made; ++attempt) {  // of half a second each
        name = "latch" + std::to_string(attempt);
        if (const auto tried = store->replace(name, "one", -1, 1'800'000'000)) made = *tried;
      }
      ASSERT_TRUE(made);
      const auto first = lease_of_record(options.base, name);
      network.with([&](auto& relay) {
        relay.refuse();
        relay.cut_after(harness::way::down, pass);
      });
      (void)store->replace(name, removes ? "" : "two", *made, 3'600'000'000);
      network.heal();
      if (lease_of_record(options.base, name) == first) continue;
      if (is_over(first)) continue;  // all of it was answered
      ++unheard;
      contender_store::versioned now;
      harness::eventually("it is read", [&] {
        const auto found = store->record(name, false, nullptr);
        if (found) now = *found;
        return found.ok();
      });
      if (!removes) {
        EXPECT_TRUE(store->replace(name, "three", now.version, 3'600'000'000).value());
      }
      EXPECT_TRUE(is_over(first)) << pass;
    }
    EXPECT_EQ(unheard, 1);
  }
}

// The waiter is woken when its lease ends, and its watch until then is removed.
TEST(etcd_leases, no_watch_is_left_of_a_lease_that_ended) {
  const auto base = fresh_base();
  auto here = holdfast::open(calm_cluster().url(base + "?session=10s"));
  auto there = holdfast::open(calm_cluster().url(base + "?session=2s"));
  const long before = watchers();
  lease held = holdfast::mutex(here, "job").acquire();
  const auto mine = lease_in(standing_of(held).key);
  const auto of_waiter = [&] {
    const auto all = keys_below(base + "/job");
    for (auto at = all.find("/job/"); at != all.npos; at = all.find("/job/", at + 1)) {
      const auto id = lease_in(all.substr(0, all.find('\n', at)));
      if (id != mine) return id;
    }
    return std::string();
  };
  std::thread waiter([&] { EXPECT_TRUE(holdfast::mutex(there, "job").acquire()); });
  harness::eventually("it watches", [&] { return watchers() == before + 1; });
  const auto first = of_waiter();
  revoke(first);
  harness::eventually("it is in line again", [&] {
    const auto id = of_waiter();
    return !id.empty() && id != first;
  });
  held = {};
  waiter.join();
  harness::eventually("nothing is watched", [&] { return watchers() == before; });
}

}  // namespace
}  // namespace etcd_test
