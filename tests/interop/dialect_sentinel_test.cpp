#include <gtest/gtest.h>

#include <future>
#include <holdfast/holdfast.hpp>

#include "harness/concurrently.hpp"
#include "harness/eventually.hpp"
#include "harness/failing.hpp"
#include "harness/redis_fleet.hpp"

// The effects of a failover on a lock that is shared with another program, and on its waiters.
namespace interop_test {
namespace {

using namespace std::chrono_literals;
using harness::outcome_of;
using holdfast::errc;
using holdfast::lease;
using holdfast::mutex;

/// Longer than a failover, on a machine on which sentinels are late so often that they stand by for
/// 30 s.
const holdfast::lock_options outlasts_all{.lease = 10min};

/// One lock that the replicas know of and one that they do not, both held, both waited for.
class held_and_waited_for {
 public:
  held_and_waited_for(harness::redis_sentinels& fleet, const std::string& dialect)
      : fleet_(fleet),
        dialect_(dialect),
        ours_(holdfast::open(fleet.url("?dialect=" + dialect))),
        others_(holdfast::open(fleet.url("?dialect=" + dialect))) {}

  void take_what_the_replicas_know_of() {
    known_ = mutex(ours_, known_name_, outlasts_all).acquire();
    for (std::size_t i = 0; i < 2; ++i) {
      harness::eventually("a replica knows of it",
                          [&] { return fleet_replica(i).ask({"EXISTS", known_name_}) == "1"; });
    }
  }
  void take_what_they_do_not_know_of() {
    unknown_ = mutex(ours_, unknown_name_, outlasts_all).acquire();
  }
  void wait_for_both() {
    waits_for_known_ = wait_for(known_name_);
    waits_for_unknown_ = wait_for(unknown_name_);
  }

  void expect_the_unknown_to_be_lost_to_another_holder() {
    auto got = waits_for_unknown_.get();
    ASSERT_TRUE(got) << dialect_;
    EXPECT_EQ(outcome_of([&] { unknown_.extend(); }).reason, errc::lost) << dialect_;
    EXPECT_TRUE(unknown_.lost().stop_requested()) << dialect_;
    EXPECT_FALSE(got->release()) << dialect_ << ": it is not taken from whom it belongs to now";
  }
  void expect_the_known_to_be_held_until_it_is_given_back() {
    EXPECT_NO_THROW(known_.extend()) << dialect_;
    EXPECT_EQ(waits_for_known_.wait_for(0s), std::future_status::timeout) << dialect_;
    EXPECT_FALSE(known_.release()) << dialect_;
    EXPECT_TRUE(waits_for_known_.get()) << dialect_;
  }

 private:
  using waiter = std::future<std::optional<lease>>;
  waiter wait_for(const std::string& name) const {
    return harness::concurrently(
        [this, name] { return mutex(others_, name).try_acquire_for(4min); });
  }
  harness::redis_server& fleet_replica(std::size_t i) const { return fleet_.servers().replica(i); }

  harness::redis_sentinels& fleet_;
  const std::string dialect_;
  const std::string known_name_ = "known-" + dialect_, unknown_name_ = "unknown-" + dialect_;
  const holdfast::session ours_, others_;
  lease known_, unknown_;
  waiter waits_for_known_, waits_for_unknown_;
};

TEST(dialect_sentinels, a_lock_that_a_failover_lost_is_reported_and_no_waiter_is_stuck) {
  harness::redis_sentinels fleet{500};
  held_and_waited_for redlock(fleet, "redlock"), redisson(fleet, "redisson");
  for (auto* d : {&redlock, &redisson}) d->take_what_the_replicas_know_of();
  // The replicas are cut off, so further writes are on the primary alone.
  const auto nowhere = std::to_string(harness::free_port());
  for (std::size_t i = 0; i < 2; ++i) {
    fleet.servers().replica(i).ask({"REPLICAOF", "127.0.0.1", nowhere});
  }
  for (auto* d : {&redlock, &redisson}) d->take_what_they_do_not_know_of();
  for (auto* d : {&redlock, &redisson}) d->wait_for_both();
  fleet.fail_over();
  for (auto* d : {&redlock, &redisson}) {
    d->expect_the_unknown_to_be_lost_to_another_holder();
    d->expect_the_known_to_be_held_until_it_is_given_back();
  }
}

}  // namespace
}  // namespace interop_test
