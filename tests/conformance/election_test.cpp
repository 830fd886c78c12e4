#include <cstdint>
#include <limits>
#include <thread>

#include "conformance/cell.hpp"
#include "conformance/exclusive.hpp"
#include "harness/eventually.hpp"
#include "harness/turns.hpp"

namespace conformance {
namespace {

using namespace std::chrono_literals;
using holdfast::election;
using holdfast::errc;
using holdfast::leadership;

class elections : public suite {
 protected:
  election mine_{here_, name_, {.note = "10.0.0.1:80"}};
  election rival_{another(), name_, {.note = "10.0.0.2:80"}};
};

INSTANTIATE_TEST_SUITE_P(stores, elections, testing::ValuesIn(cells({"election"})), cell_name);

TEST_P(elections, one_session_leads_and_each_session_can_read_the_leader) {
  EXPECT_FALSE(rival_.current());
  const leadership lead = mine_.campaign();
  EXPECT_FALSE(rival_.try_campaign());
  const auto seen = rival_.current();
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->note, "10.0.0.1:80");
  EXPECT_EQ(seen->term, lead.term());
  EXPECT_EQ(seen->pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_FALSE(seen->host.empty());
}

TEST_P(elections, a_leader_that_resigns_gives_way_to_the_next_with_a_greater_term) {
  leadership first = mine_.campaign();
  leadership second;
  std::thread waits([&] { second = rival_.campaign(); });
  until_waiting(1);
  EXPECT_FALSE(first.resign());
  waits.join();
  EXPECT_GT(second.term(), 0u);
  EXPECT_EQ(mine_.current()->term, second.term());
  EXPECT_EQ(mine_.current()->note, "10.0.0.2:80");
  EXPECT_FALSE(first) << "it is empty";
}

TEST_P(elections, a_call_without_a_thread_behaves_the_same) {
  leadership first = async_campaign(mine_).future().get().value();
  EXPECT_EQ(rival_.current()->term, first.term());
  const auto in_vain = async_campaign(rival_, 1ms).future().get();
  EXPECT_EQ(in_vain.error().code, errc::timed_out);
  auto next = async_campaign(rival_).future();
  until_waiting(1);
  EXPECT_FALSE(first.resign());
  EXPECT_GT(next.get().value().term(), 0u);
}

TEST_P(elections, the_greatest_priority_leads_next_in_any_order_of_arrival) {
  leadership first = mine_.campaign();
  if (!here_.can().preferences) {
    EXPECT_EQ(reason_of([&] { election(another(), name_, {.priority = 5}); }), errc::unsupported);
    return;
  }
  using any = std::numeric_limits<std::int32_t>;
  election strong{another(), name_, {.note = "strong", .priority = any::max()}};
  election least{another(), name_, {.note = "least", .priority = any::min()}};
  harness::turns lead{claim_us()};
  std::mutex mutex;
  const auto run = [&](election& e, std::size_t place) {
    const leadership mine = e.campaign();
    const std::lock_guard guard{mutex};
    lead.next(place);
  };
  std::thread last([&] { run(least, 3); });
  until_waiting(1);
  std::thread weak([&] { run(rival_, 2); });
  until_waiting(2);
  std::thread other([&] { run(strong, 1); });
  until_waiting(3);
  first.check();  // none of them deposes the leader
  lead.begin();
  first.resign();
  last.join();
  weak.join();
  other.join();
  EXPECT_EQ(lead.order().size(), 3U);
  EXPECT_LE(lead.out_of_order(), lead.too_late());
}

TEST_P(elections, a_campaign_may_end_by_its_deadline_or_be_cancelled) {
  const leadership lead = mine_.campaign();
  EXPECT_FALSE(rival_.campaign_for(10ms));
  EXPECT_FALSE(rival_.campaign_until(std::chrono::steady_clock::now() + 10ms));
  std::stop_source stop;
  std::thread waits([&] {
    EXPECT_EQ(reason_of([&] { (void)rival_.campaign(stop.get_token()); }), errc::cancelled);
  });
  until_waiting(1);
  stop.request_stop();
  waits.join();
  expect_no_waiters();
}

TEST_P(elections, an_observer_sees_each_leader_once_and_terms_only_grow) {
  auto stream = rival_.observe();
  EXPECT_FALSE(stream.next_for(0ms)) << "nobody leads";
  std::uint64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    election& e = i % 2 == 0 ? mine_ : rival_;
    const leadership lead = e.campaign();
    const auto seen = stream.next();
    EXPECT_EQ(seen.term, lead.term());
    EXPECT_GT(seen.term, last);
    EXPECT_EQ(seen.note, i % 2 == 0 ? "10.0.0.1:80" : "10.0.0.2:80");
    last = seen.term;
    EXPECT_FALSE(stream.next_for(1ms)) << "it was told already";
  }
}

TEST_P(elections, an_observer_misses_no_leader_between_two_polls) {
  auto stream = rival_.observe();
  EXPECT_FALSE(stream.next_for(0ms)) << "nobody leads";
  std::vector<std::uint64_t> led, seen;
  for (int i = 0; i < 10; ++i) led.push_back((i % 3 == 0 ? mine_ : rival_).campaign().term());
  for (int i = 0; i < 10; ++i) {
    const auto next = stream.next();
    seen.push_back(next.term);
    EXPECT_FALSE(next.after_gap);
    EXPECT_EQ(next.note, i % 3 == 0 ? "10.0.0.1:80" : "10.0.0.2:80");
  }
  EXPECT_EQ(seen, led);
  EXPECT_FALSE(stream.next_for(1ms)) << "nobody leads any more";
  EXPECT_FALSE(rival_.current());
}

TEST_P(elections, an_observer_that_missed_too_many_leaders_learns_of_the_gap) {
  (void)mine_.campaign().resign();
  auto stream = rival_.observe();
  EXPECT_FALSE(stream.next_for(0ms)) << "who led before is not asked for";
  for (int i = 0; i < 3; ++i) (void)mine_.campaign().resign();
  EXPECT_FALSE(stream.next().after_gap);
  for (int i = 0; i < 20; ++i) (void)mine_.campaign().resign();
  auto next = stream.next();
  EXPECT_TRUE(next.after_gap);
  for (int i = 1; i < 16; ++i) {
    const auto last = std::exchange(next, stream.next());
    EXPECT_GT(next.term, last.term);
    EXPECT_FALSE(next.after_gap);
  }
  EXPECT_FALSE(stream.next_for(1ms));
}

// On SQL a session that closes removes unused rows.
TEST_P(elections, an_observer_misses_no_leader_whose_session_is_already_closed) {
  auto stream = rival_.observe();
  EXPECT_FALSE(stream.next_for(0ms)) << "nobody leads";
  std::vector<std::uint64_t> led;
  for (int i = 0; i < 2; ++i) {
    const auto session = another();
    led.push_back(election(session, name_).campaign().term());
  }
  for (const auto term : led) {
    const auto seen = stream.next();
    EXPECT_EQ(seen.term, term);
    EXPECT_FALSE(seen.after_gap);
  }
}

TEST_P(elections, an_observer_that_waits_learns_of_the_next_leader_or_stops) {
  auto stream = election(another(), name_).observe();
  std::thread waits([&] { EXPECT_EQ(stream.next().note, "10.0.0.1:80"); });
  const leadership lead = mine_.campaign();
  waits.join();
  std::stop_source stop;
  std::thread stopped(
      [&] { EXPECT_EQ(reason_of([&] { (void)stream.next(stop.get_token()); }), errc::cancelled); });
  stop.request_stop();
  stopped.join();
}

TEST_P(elections, a_deposed_leader_is_notified_and_campaigns_again) {
  std::atomic<int> terms{0};
  std::stop_source stop;
  election again{another({.lease = 3s}), name_};
  std::thread works([&] {
    again.on_leader(
        [&](std::stop_token end, const leadership& lead) {
          EXPECT_GT(lead.term(), 0u);
          ++terms;
          harness::eventually("it is to end", [&] { return end.stop_requested(); });
        },
        stop.get_token());
  });
  harness::eventually("it leads", [&] { return terms == 1; });
  EXPECT_EQ(here_.force_release(name_), 1u);
  harness::eventually("it leads again", [&] { return terms >= 2; });
  stop.request_stop();
  works.join();
  until_free();
}

TEST_P(elections, a_leader_whose_work_is_done_resigns) {
  int calls = 0;
  mine_.on_leader([&](std::stop_token, const leadership&) { ++calls; });
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(rival_.current());
  EXPECT_THROW(mine_.on_leader([](std::stop_token, const leadership&) { throw 1; }), int);
  EXPECT_TRUE(rival_.try_campaign());
}

TEST_P(elections, notes_over_the_limit_are_refused) {
  for (const auto& bad : {std::string(201, 'n'), std::string("a\nb"), std::string("caf\xe9")}) {
    EXPECT_EQ(reason_of([&] { election(here_, name_, {.note = bad}); }), errc::invalid_argument);
  }
  EXPECT_NO_THROW(election(here_, name_, {.note = std::string(200, 'n')}));
}

TEST_P(elections, it_shares_no_name_with_a_lock) {
  const leadership lead = mine_.campaign();
  EXPECT_EQ(reason_of([&] { (void)holdfast::mutex(here_, name_).try_acquire(); }),
            errc::kind_mismatch);
  const auto held = holdfast::mutex(here_, "lock").acquire();
  EXPECT_EQ(reason_of([&] { (void)election(here_, "lock").try_campaign(); }), errc::kind_mismatch);
}

}  // namespace
}  // namespace conformance
